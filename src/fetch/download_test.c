/* download_test.c - one file from real servers that behave and misbehave (tests/fetch_rig.py says
 * how each mode does). The file is a shard of a toy, 809,848 bytes. */
#include "fetch/download.h"

#include <sys/stat.h>
#include <time.h>

#include "tests/rig.h"

#define FILE_NAME "model.safetensors"
#define PUBLISHED RIG_MODEL "/" FILE_NAME

static rig servers;

static int start_servers(void **state) {
    (void)state;
    servers = rig_start();
    return 0;
}

static int stop_servers(void **state) {
    (void)state;
    rig_stop(&servers);
    return 0;
}

/* What a download did. */
typedef struct {
    clef_status status;
    clef_error err;
    unsigned retries;
    char last_retry[1000];
    uint64_t have;  /* of the part, at the end */
    uint64_t total; /* bytes that came */
    bool complete;  /* the file is there, and is the published one */
    bool part_left; /* a part is there */
} outcome;

static void on_told(void *user, uint64_t have, const char *text) {
    outcome *o = user;
    if (text == NULL) {
        o->total += have > o->have ? have - o->have : have;
        o->have = have;
    } else {
        o->retries++;
        snprintf(o->last_retry, sizeof o->last_retry, "%s", text);
    }
}

static part_wanted wanted(void) {
    part_wanted w = {0};
    assert_int_equal(digest_file(w.hex, &w.size, PUBLISHED, NULL, NULL, NULL), CLEF_OK);
    return w;
}

/* Downloads from folders of servers, "SERVER MODE", up to NULL. */
static outcome from_into(const folder *f, const http_options *options, const char *const *sources) {
    outcome o = {0};
    char urls[4][128];
    const char *list[4];
    size_t n = 0;
    for (; sources[n] != NULL; n++) {
        assert_true(n < 4);
        list[n] = urls[n];
        snprintf(urls[n], sizeof urls[n], "%s", sources[n]);
    }
    http *h = NULL;
    assert_int_equal(http_open(&h, options, &o.err), CLEF_OK);
    const download d = {.http = h, .retry_ms = 1, .told = on_told, .user = &o};
    const part_wanted w = wanted();
    const int root = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    part p;
    o.status = part_open(&p, root, f->path, FILE_NAME, &w, NULL, NULL, &o.err);
    o.have = p.have;
    if (o.status == CLEF_OK) o.status = download_file(&d, list, n, FILE_NAME, &p, &o.err);
    part_close(&p);
    close(root);
    http_close(h);
    o.complete = rig_same(folder_path(f, FILE_NAME), PUBLISHED);
    o.part_left = file_exists(folder_path(f, FILE_NAME ".part"));
    return o;
}

static outcome from(const char *first, const char *second) {
    const folder f = folder_new();
    const http_options options = {.ca_file = servers.ca};
    const char *const sources[] = {first, second, NULL};
    rig_forget(&servers);
    const outcome o = from_into(&f, &options, sources);
    folder_remove(f.path);
    return o;
}

/* "URL/FOLDER/", good until the fourth next call. */
static const char *at(const char *url, const char *place) {
    static char text[4][128];
    static unsigned next;
    char *out = text[next++ % 4];
    snprintf(out, sizeof text[0], "%s/%s/", url, place);
    return out;
}

static outcome from_bad(const char *mode) {
    return from(at(servers.bad, mode), NULL);
}

static void arrived(const outcome *o) {
    if (o->status != CLEF_OK) fail_msg("%s", o->err.text);
    assert_true(o->complete);
    assert_false(o->part_left);
}

static void refused(const outcome *o, const char *words) {
    if (o->status == CLEF_OK || strstr(o->err.text, words) == NULL)
        fail_msg("status %d: '%s', wanted '%s'", (int)o->status, o->err.text, words);
    assert_false(o->complete);
}

/* ---- going on -------------------------------------------------------------------------------- */

static void a_whole_file_arrives_at_once(void **state) {
    (void)state;
    const outcome o = from(at(servers.mirror, "good"), NULL);
    arrived(&o);
    assert_int_equal(o.retries, 0);
    assert_true(o.total == wanted().size);
}

static void a_body_that_ends_early_is_continued_by_ranges(void **state) {
    (void)state;
    const outcome o = from_bad("short");
    arrived(&o);
    assert_true(o.total == wanted().size); /* nothing came twice */
    assert_int_equal(o.retries, 8);        /* more than five, each after some progress */
    assert_true(rig_count(&servers, "bad", "bytes=300000-\t\"one\"\t206") == 1);
}

static void a_body_of_unknown_length_that_ends_early_is_fetched_again(void **state) {
    (void)state;
    const outcome o = from_bad("unmeasured");
    arrived(&o);
    assert_int_equal(o.retries, 1);
    assert_non_null(strstr(o.last_retry, "ended after 404924 of 809848 bytes"));
}

static void a_server_that_ignores_ranges_is_taken_from_the_start(void **state) {
    (void)state;
    const outcome o = from_bad("ignores");
    arrived(&o);
    assert_true(o.total == wanted().size / 2 + wanted().size);
}

static void a_range_of_another_place_is_not_appended(void **state) {
    (void)state;
    const outcome o = from_bad("misplaced");
    arrived(&o);
    assert_int_equal(o.retries, 2);
    assert_non_null(strstr(o.last_retry, "another range came"));
}

static void a_range_of_a_file_of_another_size_is_refused(void **state) {
    (void)state;
    const outcome o = from_bad("resized");
    refused(&o, "has 809855 bytes, wanted 809848");
}

static void after_416_the_file_is_taken_from_the_start(void **state) {
    (void)state;
    const outcome o = from_bad("unsatisfied");
    arrived(&o);
    assert_non_null(strstr(o.last_retry, "416"));
}

static void a_part_that_was_not_asked_for_is_refused(void **state) {
    (void)state;
    const outcome o = from_bad("unasked");
    refused(&o, "a part of the file came, wanted the whole");
}

static void a_version_that_changes_midway_is_taken_from_the_start(void **state) {
    (void)state;
    const outcome o = from_bad("changes");
    arrived(&o);
    assert_true(rig_count(&servers, "bad", "bytes=404924-\t\"old\"\t200") == 1);
}

static void two_versions_under_one_etag_are_found_by_the_sum(void **state) {
    (void)state;
    const outcome o = from_bad("mixes");
    arrived(&o);
    assert_non_null(strstr(o.last_retry, "what came has the sum"));
}

static void a_weak_etag_is_never_sent_back(void **state) {
    (void)state;
    const outcome o = from_bad("weak");
    arrived(&o);
    assert_true(rig_count(&servers, "bad", "bytes=404924-\t-\t206") == 1);
}

static void an_etag_goes_only_to_the_server_that_gave_it(void **state) {
    (void)state;
    const folder f = folder_new();
    const http_options options = {.ca_file = servers.ca};
    rig_forget(&servers);
    const char *const first[] = {at(servers.bad, "drips"), NULL};
    const outcome o = from_into(&f, &options, first);
    refused(&o, "");
    assert_true(o.part_left && o.have == 50);
    const char *const second[] = {at(servers.mirror, "good"), NULL};
    const outcome p = from_into(&f, &options, second);
    arrived(&p);
    assert_true(p.total == wanted().size - 50);
    assert_true(rig_count(&servers, "mirror", "bytes=50-\t-\t206") == 1);
    folder_remove(f.path);
}

static void an_expired_link_is_resolved_anew(void **state) {
    (void)state;
    const outcome o = from_bad("expires");
    arrived(&o);
    assert_true(o.total == wanted().size);
    assert_true(rig_count(&servers, "bad", "/expires/") == 2);
}

static void a_link_that_the_content_host_refuses_is_resolved_anew(void **state) {
    (void)state;
    const outcome o = from_bad("expired");
    arrived(&o);
    assert_non_null(strstr(o.last_retry, "answered 403"));
    assert_null(strstr(o.last_retry, "sig=")); /* the query of a link may be a secret */
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void a_busy_server_is_given_the_time_that_it_asks_for(void **state) {
    (void)state;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    const outcome o = from_bad("busy");
    clock_gettime(CLOCK_MONOTONIC, &b);
    arrived(&o);
    assert_non_null(strstr(o.last_retry, "429 and asks to wait 1 s"));
    assert_true((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9 >= 1);
}

static void a_server_that_asks_for_a_day_is_given_up(void **state) {
    (void)state;
    const outcome o = from_bad("later");
    refused(&o, "429 and asks to wait 86400 s");
    assert_int_equal(o.retries, 0);
}

static void a_server_that_fails_for_a_while_is_asked_again(void **state) {
    (void)state;
    const outcome o = from_bad("broken");
    arrived(&o);
    assert_int_equal(o.retries, 3); /* 500, 503, 408 */
}

static void a_server_that_fails_for_good_is_asked_five_times(void **state) {
    (void)state;
    const outcome o = from_bad("down");
    refused(&o, "502");
    assert_true(rig_count(&servers, "bad", "/down/") == 5);
}

static void a_stalled_transfer_is_broken_off_and_continued(void **state) {
    (void)state;
    const folder f = folder_new();
    const http_options options = {.ca_file = servers.ca, .stall_s = 2};
    const char *const sources[] = {at(servers.bad, "stalls"), NULL};
    const outcome o = from_into(&f, &options, sources);
    folder_remove(f.path);
    arrived(&o);
    assert_non_null(strstr(o.last_retry, "too slow"));
    assert_true(o.total == wanted().size);
}

static void a_server_that_drips_is_given_up_after_five_tries(void **state) {
    (void)state;
    const outcome o = from_bad("drips");
    refused(&o, "");
    assert_true(rig_count(&servers, "bad", "/drips/") == 5);
    assert_true(o.part_left && o.have == 50);
}

static void nobody_listening_is_a_failure_of_the_source(void **state) {
    (void)state;
    const outcome o = from("https://127.0.0.4:1/x/", at(servers.mirror, "good"));
    arrived(&o);
    assert_int_equal(o.retries, 5); /* four waits, and the change of the source */
}

/* ---- wrong for good -------------------------------------------------------------------------- */

static void wrong_content_of_the_right_length_sends_to_the_next_source(void **state) {
    (void)state;
    const outcome o = from(at(servers.mirror, "wrong"), at(servers.mirror, "good"));
    arrived(&o);
    assert_int_equal(o.retries, 1);
    const outcome alone = from(at(servers.mirror, "wrong"), NULL);
    refused(&alone, "what came has the sum");
    assert_int_equal(alone.status, CLEF_ERR_FORMAT);
    assert_true(rig_count(&servers, "mirror", "/wrong/") == 1);
}

static void a_missing_file_sends_to_the_next_source_at_once(void **state) {
    (void)state;
    const outcome o = from(at(servers.mirror, "gone"), at(servers.mirror, "good"));
    arrived(&o);
    assert_true(rig_count(&servers, "mirror", "/gone/") == 1);
}

static void a_server_without_ranges_gives_a_whole_file(void **state) {
    (void)state;
    const outcome o = from(at(servers.bad, "drips"), at(servers.mirror, "noranges"));
    arrived(&o);
    assert_true(rig_count(&servers, "mirror", "bytes=50-\t-\t200") == 1);
}

static void a_forced_content_coding_is_refused(void **state) {
    (void)state;
    const outcome o = from(at(servers.mirror, "coded"), NULL);
    refused(&o, "answered with the content coding 'gzip', wanted the plain bytes");
    assert_int_equal(o.retries, 0);
}

static void a_body_that_does_not_end_is_cut_at_its_size(void **state) {
    (void)state;
    const outcome o = from_bad("long");
    refused(&o, "sends more than the 809848 bytes");
}

static void another_length_is_refused_before_the_body(void **state) {
    (void)state;
    const outcome longer = from_bad("longer");
    refused(&longer, "has 809852 bytes, wanted 809848");
    const outcome shorter = from_bad("shorter");
    refused(&shorter, "has 809844 bytes, wanted 809848");
    assert_true(longer.total == 0 && shorter.total == 0);
}

static void endless_headers_are_refused(void **state) {
    (void)state;
    const outcome o = from_bad("headers");
    refused(&o, "more than 65536 bytes of headers");
}

static void the_words_of_a_refusal_are_shown_without_control_bytes(void **state) {
    (void)state;
    const outcome o = from_bad("denied");
    refused(&o, "the server answered 403 (not for you\\x1b[31m); a gated or private model");
    assert_int_equal(o.retries, 0);
}

/* ---- redirects and certificates -------------------------------------------------------------- */

static void five_redirects_are_followed(void **state) {
    (void)state;
    const outcome o = from_bad("hops5"); /* relative, absolute, without a scheme, with "..", 308 */
    arrived(&o);
}

static void a_sixth_redirect_is_refused(void **state) {
    (void)state;
    const outcome o = from_bad("hops6");
    refused(&o, "more than 5 redirects");
    const outcome loop = from_bad("loop");
    refused(&loop, "more than 5 redirects");
    assert_true(rig_count(&servers, "bad", "/loop/") == 6);
}

static void a_redirect_leads_to_https_only(void **state) {
    (void)state;
    const outcome plain = from(at(servers.mirror, "down"), NULL);
    refused(&plain, "wanted https; --allow-http");
    const outcome ftp = from_bad("ftp");
    refused(&ftp, "ftp://127.0.0.4/" FILE_NAME ": wanted https");
    const outcome file = from_bad("file");
    refused(&file, "");
    const outcome named = from_bad("named");
    refused(&named, "a URL of https://127.0.0.3:443 holds a name or a password");
}

static void a_wrong_certificate_is_final(void **state) {
    (void)state;
    const char *const wrong[] = {servers.stranger, servers.misnamed, servers.late};
    for (size_t i = 0; i < 3; i++) {
        char url[80];
        snprintf(url, sizeof url, "%s/", wrong[i]);
        const outcome o = from(url, NULL);
        refused(&o, i == 1 ? "127.0.0.1" : "certificate");
        assert_int_equal(o.retries, 0);
    }
    const folder f = folder_new();
    const char *const sources[] = {at(servers.mirror, "good"), NULL};
    const outcome unknown = from_into(&f, &(http_options){0}, sources);
    refused(&unknown, "certificate"); /* the system does not know the authority of the tests */
    folder_remove(f.path);
}

static void plain_http_needs_leave(void **state) {
    (void)state;
    const folder f = folder_new();
    const char *const sources[] = {at(servers.plain, "good"), NULL};
    http_options options = {.ca_file = servers.ca};
    const outcome no = from_into(&f, &options, sources);
    refused(&no, "wanted https; --allow-http");
    options.allow_http = true;
    const outcome yes = from_into(&f, &options, sources);
    arrived(&yes);
    folder_remove(f.path);
}

static void a_token_goes_to_its_origin_and_nowhere_else(void **state) {
    (void)state;
    const folder f = folder_new();
    http_options options = {.ca_file = servers.ca, .token = "hf_secret", .token_url = servers.bad};
    const char *const sources[] = {at(servers.bad, "away"), NULL};
    rig_forget(&servers);
    const outcome o = from_into(&f, &options, sources);
    arrived(&o);
    assert_true(rig_count(&servers, "bad", "Bearer hf_secret") == 1);
    assert_true(rig_count(&servers, "mirror", "/good/" FILE_NAME "\t-\t") == 1);
    assert_true(rig_count(&servers, "mirror", "hf_secret") == 0);
    folder_remove(f.path);

    /* The same host on another port is another origin. */
    const folder g = folder_new();
    options.token_url = servers.plain;
    options.allow_http = true;
    const char *const same_host[] = {at(servers.mirror, "good"), NULL};
    rig_forget(&servers);
    const outcome p = from_into(&g, &options, same_host);
    arrived(&p);
    assert_true(rig_count(&servers, "mirror", "hf_secret") == 0);
    folder_remove(g.path);
}

static void a_token_is_not_sent_unprotected(void **state) {
    (void)state;
    const folder f = folder_new();
    const http_options options = {
        .allow_http = true, .token = "hf_secret", .token_url = servers.plain};
    const char *const sources[] = {at(servers.plain, "good"), NULL};
    rig_forget(&servers);
    const outcome o = from_into(&f, &options, sources);
    arrived(&o);
    assert_true(rig_count(&servers, "mirror", "/good/" FILE_NAME "\t-\t") == 1);
    folder_remove(f.path);
}

static void a_token_with_a_line_end_is_refused(void **state) {
    (void)state;
    http *h = NULL;
    clef_error err = {0};
    const http_options options = {.token = "hf_a\r\nX: y", .token_url = "https://127.0.0.1"};
    assert_int_equal(http_open(&h, &options, &err), CLEF_ERR_INPUT);
    assert_null(h);
    assert_null(strstr(err.text, "hf_a")); /* nor shown */
}

static void paths_are_encoded_in_urls(void **state) {
    (void)state;
    buf url = {0};
    http_add_path(&url, STR("a b/c#d?e%f&g+h~i"));
    assert_string_equal(url.p, "a%20b/c%23d%3Fe%25f%26g%2Bh~i");
    buf_free(&url);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_arrives_at_once),
        cmocka_unit_test(a_body_that_ends_early_is_continued_by_ranges),
        cmocka_unit_test(a_body_of_unknown_length_that_ends_early_is_fetched_again),
        cmocka_unit_test(a_server_that_ignores_ranges_is_taken_from_the_start),
        cmocka_unit_test(a_range_of_another_place_is_not_appended),
        cmocka_unit_test(a_range_of_a_file_of_another_size_is_refused),
        cmocka_unit_test(after_416_the_file_is_taken_from_the_start),
        cmocka_unit_test(a_part_that_was_not_asked_for_is_refused),
        cmocka_unit_test(a_version_that_changes_midway_is_taken_from_the_start),
        cmocka_unit_test(two_versions_under_one_etag_are_found_by_the_sum),
        cmocka_unit_test(a_weak_etag_is_never_sent_back),
        cmocka_unit_test(an_etag_goes_only_to_the_server_that_gave_it),
        cmocka_unit_test(an_expired_link_is_resolved_anew),
        cmocka_unit_test(a_link_that_the_content_host_refuses_is_resolved_anew),
        cmocka_unit_test(a_busy_server_is_given_the_time_that_it_asks_for),
        cmocka_unit_test(a_server_that_asks_for_a_day_is_given_up),
        cmocka_unit_test(a_server_that_fails_for_a_while_is_asked_again),
        cmocka_unit_test(a_server_that_fails_for_good_is_asked_five_times),
        cmocka_unit_test(a_stalled_transfer_is_broken_off_and_continued),
        cmocka_unit_test(a_server_that_drips_is_given_up_after_five_tries),
        cmocka_unit_test(nobody_listening_is_a_failure_of_the_source),
        cmocka_unit_test(wrong_content_of_the_right_length_sends_to_the_next_source),
        cmocka_unit_test(a_missing_file_sends_to_the_next_source_at_once),
        cmocka_unit_test(a_server_without_ranges_gives_a_whole_file),
        cmocka_unit_test(a_forced_content_coding_is_refused),
        cmocka_unit_test(a_body_that_does_not_end_is_cut_at_its_size),
        cmocka_unit_test(another_length_is_refused_before_the_body),
        cmocka_unit_test(endless_headers_are_refused),
        cmocka_unit_test(the_words_of_a_refusal_are_shown_without_control_bytes),
        cmocka_unit_test(five_redirects_are_followed),
        cmocka_unit_test(a_sixth_redirect_is_refused),
        cmocka_unit_test(a_redirect_leads_to_https_only),
        cmocka_unit_test(a_wrong_certificate_is_final),
        cmocka_unit_test(plain_http_needs_leave),
        cmocka_unit_test(a_token_goes_to_its_origin_and_nowhere_else),
        cmocka_unit_test(a_token_is_not_sent_unprotected),
        cmocka_unit_test(a_token_with_a_line_end_is_refused),
        cmocka_unit_test(paths_are_encoded_in_urls),
    };
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
