/* wire_test.c - what is a request, byte by byte, and what only looks like one. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/buf.h"
#include "server/wire.h"

#define POST "POST /v1/systemone HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

enum { MAX_BODY = 1000 };

/* Feeds `text` in pieces of `piece` bytes. Returns the requests that ended, or minus the status
 * that refused the rest. */
static int feed(str text, size_t piece) {
    wire w = {.max_body = MAX_BODY};
    int ended = 0;
    for (size_t at = 0; at < text.n;) {
        const size_t n = text.n - at < piece ? text.n - at : piece;
        size_t used = 0;
        const wire_result r = wire_feed(&w, text.p + at, n, &used);
        assert_true(used <= n);
        if (r == WIRE_BAD) {
            assert_non_null(w.reason);
            return -w.status;
        }
        if (r == WIRE_MORE) assert_int_equal(used, n);
        if (r == WIRE_END) ended++;
        at += used;
    }
    return wire_is_inside(&w) ? 1000 + ended : ended;
}

typedef struct {
    str text;
    int want; /* requests, 1000 more when one is unfinished; or minus a status */
} sample;

/* However the bytes are cut, the verdict is the same. */
static void check(const sample *samples, size_t n) {
    static const size_t PIECES[] = {1, 2, 3, 7, 64, SIZE_MAX};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof PIECES / sizeof *PIECES; k++) {
            const int got = feed(samples[i].text, PIECES[k]);
            if (got != samples[i].want)
                fail_msg("sample %zu in pieces of %zu: %d, wanted %d: %.*s", i, PIECES[k], got,
                         samples[i].want, STR_ARG(samples[i].text));
        }
}

#define CHECK(samples) check(samples, sizeof(samples) / sizeof *(samples))
#define S(literal) \
    { literal, sizeof(literal) - 1 }

static void requests_end_where_their_framing_says(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
        {S("GET / HTTP/1.0\r\n\r\n"), 1},
        {S("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
        {S("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 2},
        {S("GET / HTTP/1.1\r\nHost: a\r\n\r"), 1000},
        {S(POST "Content-Length: 2\r\n\r\nab"), 1},
        {S(POST "Content-Length: 2\r\n\r\na"), 1000},
        {S(POST "Content-Length: 0\r\n\r\n"), 1},
        {S(POST "Content-Length:\t2\r\n\r\nab\r\nGET / HTTP/1.0\r\n\r\n"), 2},
        {S(CHUNKED "2\r\nab\r\n0\r\n\r\n"), 1},
        {S(CHUNKED "2;a=b; c=\"d\"\r\nab\r\n00\r\nX: y\r\n\r\nGET / HTTP/1.0\r\n\r\n"), 2},
        {S(CHUNKED "A\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n"), 1},
        {S(POST "transfer-encoding: Chunked\r\n\r\n0\r\n\r\n"), 1},
        {S("GET / HTTP/1.1\r\nHost: a\r\nA: \xC3\xA9 \t \r\nB:\r\n\r\n"), 1},
    };
    CHECK(SAMPLES);
}

static void a_body_is_not_read_as_a_request(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S(POST "Content-Length: 26\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r"), 1},
        {S(CHUNKED "1b\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n"), 1},
    };
    CHECK(SAMPLES);
}

static void two_ways_to_frame_a_body_are_refused(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S(POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"), -400},
        {S(POST "Content-Length: 2\r\nContent-Length: 5\r\n\r\nab"), -400},
        {S(POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), -400},
        {S(POST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n"), -400},
        {S(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), -400},
        {S(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), -400},
        {S(POST "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n"), -400},
        {S(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), -400},
        {S("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), -400},
    };
    CHECK(SAMPLES);
}

static void a_length_is_digits_only(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S(POST "Content-Length: -1\r\n\r\n"), -400},
        {S(POST "Content-Length: +5\r\n\r\n"), -400},
        {S(POST "Content-Length: 5 \r\n\r\n"), -400},
        {S(POST "Content-Length: 5,5\r\n\r\n"), -400},
        {S(POST "Content-Length: 0x5\r\n\r\n"), -400},
        {S(POST "Content-Length: \r\n\r\n"), -400},
        {S(POST "Content-Length: 99999999999999999999\r\n\r\n"), -400},
        {S(POST "Content-Length: 999999999999999999\r\n\r\n"), 1000},
    };
    CHECK(SAMPLES);
}

static void lines_end_in_cr_lf_only(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S("GET / HTTP/1.1\nHost: a\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\n\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), -400},
        {S(CHUNKED "2\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "2\r\nab\n0\r\n\r\n"), -400},
        {S(CHUNKED "2\r\nab\r\n0\n\r\n"), -400},
        {S(CHUNKED "2\r\nab\r\n0\r\n\n"), -400},
        {S("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
    };
    CHECK(SAMPLES);
}

static void headers_are_tokens_colons_and_text(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\n\tA: b\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\nAb\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\nA: b\x7F\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nA: b\r\n\r\n"), -400},
        {S("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), -400},
        {S(CHUNKED "0\r\nContent-Length: 5\r\n\r\n"), -400},
        {S(CHUNKED "0\r\nX y\r\n\r\n"), -400},
    };
    CHECK(SAMPLES);
}

static void a_request_line_has_three_parts(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S("GET /\r\nHost: a\r\n\r\n"), -400},
        {S("GET\r\n\r\n"), -400},
        {S("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("GET / x HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("G\0T / HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("GET / http/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), -400},
        {S("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), -505},
        {S("\x16\x03\x01\x02\r\n\r\n"), -400},
    };
    CHECK(SAMPLES);
}

static void a_target_may_be_an_http_url(void **state) {
    (void)state;
    static const struct {
        const char *target, *host, *path;
    } GOOD[] = {
        {"/a", NULL, "/a"},
        {"//b/a", NULL, "//b/a"},
        {"*", NULL, "*"},
        {"http://b/a", "b", "/a"},
        {"HTTP://b:1/a/c?d=http://e/", "b:1", "/a/c?d=http://e/"},
        {"http://[::1]:80/", "[::1]:80", "/"},
        {"http://b", "b", "/"},
        {"http://b?c", "b", "/"},
        {"http://b//c", "b", "//c"},
        {"http://b/@c", "b", "/@c"},
    };
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        str host, path;
        assert_true(wire_split_target(str_of(GOOD[i].target), &host, &path));
        assert_true(str_equal(path, str_of(GOOD[i].path)));
        if (GOOD[i].host == NULL)
            assert_null(host.p);
        else
            assert_true(host.p != NULL && str_equal(host, str_of(GOOD[i].host)));
    }
    static const char *const BAD[] = {
        "",         "a",        "b:80",         "http:",      "http:/b/a",   "http://",
        "http:///", "http://?", "https://b/a",  "ftp://b/a",  "http://u@b/", "http://u:p@b/a",
        "http://@", "ttp://b/", "http://@b?/a", "file:///a/", "**",          "http://#"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        str host, path;
        if (wire_split_target(str_of(BAD[i]), &host, &path)) fail_msg("%s", BAD[i]);
    }
    static const sample SAMPLES[] = {
        {S("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), 1},
        {S("GET http://a/ HTTP/1.0\r\n\r\n"), 1},
        {S("GET http://a/ HTTP/1.1\r\n\r\n"), -400}, /* Host is needed all the same */
        {S("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
        {S("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), -400},
    };
    CHECK(SAMPLES);
}

static void a_chunk_is_as_long_as_its_size(void **state) {
    (void)state;
    static const sample SAMPLES[] = {
        {S(CHUNKED "ffffffffffffffff1\r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "0x2\r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "-2\r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED " 2\r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "2 \r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "\r\nab\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "2\r\nabc\r\n0\r\n\r\n"), -400},
        {S(CHUNKED "2\r\nab0\r\n\r\n"), -400},
        {S(CHUNKED "2\r\nab\r\n"), 1000},
        {S(CHUNKED "ffffffff\r\n"), -413},
        {S(CHUNKED "3e9\r\n"), -413},
        {S(CHUNKED "3e8\r\n"), 1000},
    };
    CHECK(SAMPLES);
}

static void flood(int want, const char *before, const char *again, size_t times) {
    buf text = {0};
    buf_add_text(&text, before);
    for (size_t i = 0; i < times; i++) buf_add_text(&text, again);
    const sample s = {{text.p, text.n}, want};
    check(&s, 1);
    buf_free(&text);
}

static void floods_are_refused_when_they_pass_a_limit(void **state) {
    (void)state;
    const char *get = "GET / HTTP/1.1\r\nHost: a\r\n";
    flood(-414, "GET /", "aaaaaaaa", 8192);
    flood(-431, "GET / HTTP/1.1\r\nHost: a\r\nX: ", "aaaaaaaa", 1200);
    flood(-431, get, "a: b\r\n", 200);
    flood(-431, get,
          "a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
          90);
    flood(-431, CHUNKED "0\r\n", "a: b\r\n", 200);
    flood(-400, CHUNKED "1;", "aaaaaaaa", 100);
    flood(-413, CHUNKED, "1\r\na\r\n", MAX_BODY + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_end_where_their_framing_says),
        cmocka_unit_test(a_body_is_not_read_as_a_request),
        cmocka_unit_test(two_ways_to_frame_a_body_are_refused),
        cmocka_unit_test(a_length_is_digits_only),
        cmocka_unit_test(lines_end_in_cr_lf_only),
        cmocka_unit_test(headers_are_tokens_colons_and_text),
        cmocka_unit_test(a_request_line_has_three_parts),
        cmocka_unit_test(a_target_may_be_an_http_url),
        cmocka_unit_test(a_chunk_is_as_long_as_its_size),
        cmocka_unit_test(floods_are_refused_when_they_pass_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
