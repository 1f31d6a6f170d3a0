/* verify_oom_test.c - memory that runs out while a folder is proven, listed or signed: the 1st,
 * 2nd,
 * ... allocation fails until none is left to fail, and each failure is CLEF_ERR_MEMORY. Nothing may
 * come out right, or wrong, for want of memory. */
#include "tests/oom.h"
#include "tests/oom_each.h"

#include "tests/folder.h"

#include "fetch/verify.h"

#define COMMIT "1111111111111111111111111111111111111111"
#define TOY TESTDATA "toy-two-layers"

typedef struct {
    char dir[1024], list[1024], cache[1024], key[64];
    minisign_secret secret;
} paths;

static clef_status make_once(void *context, clef_error *err) {
    const paths *p = context;
    buf text = {0};
    const manifest_options o = {.dir = p->dir, .repo = "Me/Toy", .revision = COMMIT, .jobs = 2};
    const clef_status s = manifest_make(&text, &o, err);
    buf_free(&text);
    return s;
}

static clef_status sign_once(void *context, clef_error *err) {
    const paths *p = context;
    buf text = {0};
    const clef_status s = minisign_sign_file(&text, &p->secret, p->list, STR("x"), err);
    buf_free(&text);
    return s;
}

static clef_status verify_once(void *context, clef_error *err) {
    const paths *p = context;
    verify_result r = {0};
    const verify_options o = {.dir = p->dir, .list = p->list, .key = p->key, .jobs = 2};
    clef_status s = verify_run(&r, &o, err);
    buf text = {0}, as_json = {0};
    if (s == CLEF_OK) s = verify_report(&text, &r, false, err);
    if (s == CLEF_OK) s = verify_report(&as_json, &r, true, err);
    if (s == CLEF_OK) assert_int_equal(r.n_faults, 0);
    buf_free(&text);
    buf_free(&as_json);
    verify_free(&r);
    return s;
}

/* A snapshot with a built-in table, which has almost nothing of it. */
static clef_status verify_cache_once(void *context, clef_error *err) {
    const paths *p = context;
    verify_result r = {0};
    const verify_options o = {.dir = "Cloudflare/clef-flash", .hub_cache = p->cache, .jobs = 1};
    const clef_status s = verify_run(&r, &o, err);
    if (s == CLEF_OK) {
        assert_int_equal(r.trust, VERIFY_BUILTIN);
        assert_int_equal(r.n_of[VERIFY_CHANGED], 1);
        assert_int_equal(r.n_of[VERIFY_MISSING], 10);
    }
    verify_free(&r);
    return s;
}

static clef_status scan_once(void *context, clef_error *err) {
    (void)context;
    int sound = 0;
    const clef_options options = {.model = TOY, .threads = 1};
    const clef_scan_options o = {.jobs = 2};
    const clef_status s = clef_scan(&options, &o, &sound, err);
    if (s == CLEF_OK) assert_int_equal(sound, 1);
    return s;
}

static void write_lists(const folder *f, paths *p) {
    buf public = {0}, secret = {0}, text = {0}, sig = {0};
    clef_error err = {0};
    assert_int_equal(minisign_generate(&public, &secret, NULL, 0, 0, &err), CLEF_OK);
    assert_int_equal(
        minisign_secret_read(&p->secret, (str){secret.p, secret.n}, "k", NULL, NULL, &err),
        CLEF_OK);
    snprintf(p->key, sizeof p->key, "%.56s", strchr(public.p, '\n') + 1);
    const manifest_options o = {.dir = p->dir, .repo = "Me/Toy", .revision = COMMIT};
    assert_int_equal(manifest_make(&text, &o, &err), CLEF_OK);
    folder_write(f, "list.json", (str){text.p, text.n});
    assert_int_equal(minisign_sign_file(&sig, &p->secret, p->list, STR("x"), &err), CLEF_OK);
    folder_write(f, "list.json.minisig", (str){sig.p, sig.n});
    buf_free(&public);
    buf_free(&secret);
    buf_free(&text);
    buf_free(&sig);
}

static void want_of_memory_is_told_as_such(void **state) {
    (void)state;
    static const char *const folders[] = {
        "m",
        "m/sub",
        "cache",
        "cache/models--Cloudflare--clef-flash",
        "cache/models--Cloudflare--clef-flash/refs",
        "cache/models--Cloudflare--clef-flash/snapshots",
        "cache/models--Cloudflare--clef-flash/snapshots/22b75507981345858dd152fbd9a6f8c0c4068b0a"};
    const folder f = folder_new();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) folder_make(&f, folders[i]);
    folder_write(&f, "m/config.json", STR("{}"));
    folder_write(&f, "m/sub/other", STR("other"));
    folder_write(&f, "cache/models--Cloudflare--clef-flash/refs/main",
                 STR("22b75507981345858dd152fbd9a6f8c0c4068b0a"));
    folder_write(&f,
                 "cache/models--Cloudflare--clef-flash/snapshots/"
                 "22b75507981345858dd152fbd9a6f8c0c4068b0a/config.json",
                 STR("{}"));
    paths p;
    snprintf(p.dir, sizeof p.dir, "%s", folder_path(&f, "m"));
    snprintf(p.list, sizeof p.list, "%s", folder_path(&f, "list.json"));
    snprintf(p.cache, sizeof p.cache, "%s", folder_path(&f, "cache"));
    write_lists(&f, &p);
    assert_true(oom_each(make_once, &p) > 10);
    assert_true(oom_each(sign_once, &p) > 2);
    assert_true(oom_each(verify_once, &p) > 20);
    assert_true(oom_each(verify_cache_once, &p) > 10);
    assert_true(oom_each(scan_once, &p) > 20);
    folder_remove(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(want_of_memory_is_told_as_such)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
