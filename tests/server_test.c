/* server_test.c - clef serve from outside: what it answers, what it refuses, and whom.
 *
 * A real process on a loopback port of its own, bytes written to sockets by hand, and what comes
 * back. The model is a toy: its numbers mean nothing, but they are the bits that clef_ask gives. */
#include <zstd.h>

#include "tests/server.h"

/* ---- answers ------------------------------------------------------------------------------- */

/* What the library answers, to compare with. */
static void expect_library(const char *body, const char *got) {
    clef_engine *engine = NULL;
    clef_answer *want = NULL;
    clef_error err = {0};
    const clef_options options = {.model = TOY};
    if (clef_open(&engine, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    if (clef_ask(engine, NULL, body, strlen(body), &want, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    assert_string_equal(got, clef_answer_json(want, NULL));
    clef_answer_free(want);
    clef_close(engine);
}

static void a_request_gets_the_librarys_answer(void **state) {
    (void)state;
    answer a = post(shared.port, REQUEST);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.text.p, "\r\nContent-Type: application/json\r\n"));
    expect_library(REQUEST, a.body);
    done(&a);
}

static void all_paths_of_the_protocol_answer(void **state) {
    (void)state;
    static const char *const PATHS[] = {
        "/v1/systemone",        "/systemone",    "/api/v1/systemone",
        "/v1/v1/systemone",     "/v1/decisions", "/api/v1/decisions",
        "/api/alpha/decisions", "/v1/jev",       "/v1/systemone/"};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        char line[64];
        snprintf(line, sizeof line, "POST %s", PATHS[i]);
        expect(ask_with(shared.port, line, "", STR(REQUEST)), 200, "\"answers\"");
    }
}

static void an_answer_names_the_served_model(void **state) {
    (void)state;
    static const char *const MODELS[] = {"\"model\":\"jev-latest\",", "\"model\":null,", ""};
    for (size_t i = 0; i < 3; i++) {
        char body[200];
        snprintf(body, sizeof body, "{%s\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\"}}}",
                 MODELS[i]);
        expect(post(shared.port, body), 200, "{\"model\": \"clef-flash\", ");
    }
    expect(post(shared.port, "{\"model\":\"gpt-x\",\"state\":\"\",\"questions\":{\"q\":{\"type\":"
                             "\"noul\"}}}"),
           400,
           "{\"detail\": {\"error_type\": \"api_usage_error\", \"message\": \"Unknown model: "
           "gpt-x\"}}");
}

static void a_kept_answer_is_the_same_bytes(void **state) {
    (void)state;
    const char *body = "{\"state\":\"kept\",\"questions\":{\"q\":{\"type\":\"noul\"}}}";
    answer first = post(shared.port, body), second = post(shared.port, body);
    assert_int_equal(first.status, 200);
    assert_string_equal(first.body, second.body);
    assert_non_null(strstr(first.text.p, "model;dur="));
    assert_null(strstr(second.text.p, "model;dur=")); /* nothing was computed */
    done(&first);
    done(&second);
}

static void ids_of_any_kind_come_back(void **state) {
    (void)state;
    const char *body = "{\"state\":\"s\",\"questions\":{\"ticket-1\":{\"type\":\"noul\"},\"q.2 "
                       "x\":{\"type\":\"noul\"},\"\xEC\xA7\x88\xEB\xAC\xB8\":{\"type\":\"noul\"},"
                       "\"\\ud83d\\ude00\":{\"type\":\"noul\"},\"a\\u0000b\":{\"type\":\"noul\"}}}";
    answer a = post(shared.port, body);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "{\"ticket-1\": "));
    assert_non_null(strstr(a.body, ", \"q.2 x\": "));
    assert_non_null(strstr(a.body, ", \"\xEC\xA7\x88\xEB\xAC\xB8\": "));
    assert_non_null(strstr(a.body, ", \"\xF0\x9F\x98\x80\": "));
    assert_non_null(strstr(a.body, ", \"a\\u0000b\": "));
    done(&a);
}

static void the_envelope_holds_answers_and_errors(void **state) {
    (void)state;
    const char *line = "POST /client/v4/accounts/any/ai/run/@cf/cloudflare/clef-flash";
    expect(ask_with(shared.port, line, "", STR(REQUEST)), 200,
           "{\"success\": true, \"result\": {\"model\": \"clef-flash\", \"answers\": ");
    expect(ask_with(shared.port, line, "",
                    STR("{\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"x\"}}}")),
           422,
           "{\"success\": false, \"result\": null, \"errors\": [{\"code\": 5004, \"message\": "
           "\"questions.a.type: wanted noul, choice or score\"}], \"messages\": []}");
    expect(ask_with(shared.port, "POST /accounts/any/ai/run/@cf/cloudflare/clef", "",
                    STR("{\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"noul\"}}}")),
           400, "Unknown model: clef");
    expect(ask_with(shared.port, line, "Content-Encoding: gzip\r\n", STR("x")), 415,
           "{\"success\": false");
}

static void the_models_name_in_a_path_may_be_encoded(void **state) {
    (void)state;
    const str body = STR("{\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"noul\"}}}");
    static const char *const NAMES[] = {"%40cf%2Fcloudflare%2Fclef-flash",
                                        "%40cf/cloudflare/clef-flash",
                                        "@cf%2fcloudflare/clef-flash"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char line[120];
        snprintf(line, sizeof line, "POST /client/v4/accounts/any/ai/run/%s", NAMES[i]);
        expect(ask_with(shared.port, line, "", body), 200, "{\"success\": true");
    }
    expect(ask_with(shared.port, "POST /accounts/any/ai/run/%40cf%2Fcloudflare%2Fclef", "", body),
           400, "Unknown model: clef\"");
    expect(ask_with(shared.port, "POST /v1%2Fsystemone", "", body), 404, NULL);
    expect(ask_with(shared.port, "POST /accounts%2Fany/ai/run/@cf/cloudflare/clef-flash", "", body),
           404, NULL);
}

static void a_batch_is_answered_in_order_or_not_at_all(void **state) {
    (void)state;
    const char *line = "POST /v1/systemone/batch";
    answer a = ask_with(shared.port, line, "",
                        STR("[{\"state\":\"a\",\"questions\":{\"x\":{\"type\":\"noul\"}}},{"
                            "\"state\":\"b\",\"truncate\":true,\"questions\":{\"y\":{\"type\":"
                            "\"noul\"}}}]"));
    assert_int_equal(a.status, 200);
    const char *x = strstr(a.body, "\"x\""), *y = strstr(a.body, "\"y\"");
    assert_true(a.body[0] == '[' && x != NULL && y != NULL && x < y);
    done(&a);
    expect(ask_with(shared.port, line, "",
                    STR("{\"model\":\"jev\",\"states\":[\"a\",{\"b\":1}],\"questions\":{\"x\":{"
                        "\"type\":\"noul\"}}}")),
           200, "{\"model\": \"clef-flash\", \"results\": [{\"answers\": {\"x\": ");
    expect(ask_with(shared.port, line, "",
                    STR("[{\"state\":\"a\",\"questions\":{\"x\":{\"type\":\"noul\"}}},{"
                        "\"state\":null,\"questions\":{\"x\":{\"type\":\"noul\"}}}]")),
           422, "\"loc\": [\"body\", 1, \"state\"]");
    expect(ask_with(shared.port, line, "",
                    STR("{\"states\":[\"a\",1],\"questions\":{\"x\":{\"type\":\"noul\"}}}")),
           422, "\"loc\": [\"body\", \"states\", 1]");
    expect(ask_with(shared.port, line, "", STR("[]")), 422, "needs between 1 and 256 requests");
}

static void a_batch_answer_equals_the_single_one(void **state) {
    (void)state;
    answer one = post(shared.port, REQUEST);
    answer many = ask_with(shared.port, "POST /v1/systemone/batch", "", STR("[" REQUEST "]"));
    assert_int_equal(many.status, 200);
    assert_memory_equal(many.body + 1, one.body, strlen(one.body));
    assert_non_null(strstr(many.text.p, "\r\nx-clef-cached-tokens: "));
    assert_non_null(strstr(many.text.p, "\r\nServer-Timing: queue;dur="));
    done(&one);
    done(&many);
}

static void other_dialects_are_named(void **state) {
    (void)state;
    expect(
        ask_with(shared.port, "POST /v1/decisions", "",
                 STR("{\"input\":\"s\",\"questions\":[{\"name\":\"a\",\"type\":\"predicate\"}]}")),
        422, "OpenAI's decisions");
    expect(ask_with(shared.port, "POST /v1/decisions", "",
                    STR("{\"input\":\"s\",\"questions\":[{\"id\":\"a\",\"type\":\"yes_no\"}]}")),
           422, "SGLang's decisions");
}

static void models_serve_both_families_of_clients(void **state) {
    (void)state;
    answer a = get(shared.port, "/v1/models");
    assert_int_equal(a.status, 200);
    arena mem = {0};
    const json *root = NULL;
    assert_int_equal(json_parse(&root, str_of(a.body), "", &(json_limits){0}, &mem, NULL), CLEF_OK);
    const json *data = json_get(root, STR("data")), *list = json_get(root, STR("models"));
    assert_true(str_equal(json_get(data->first, STR("id"))->text, STR("clef-flash")));
    assert_int_equal(json_get(data->first, STR("created"))->kind, JSON_NUMBER);
    assert_int_equal(list->n, 2);
    for (const json *m = list->first; m != NULL; m = m->next)
        assert_int_equal(json_get(m, STR("release_date"))->text.n, 10);
    arena_free(&mem);
    done(&a);
    expect(get(shared.port, "/models"), 200, NULL);
    expect(get(shared.port, "/v1/models/clef-flash"), 200, "{\"id\": \"clef-flash\"");
    expect(get(shared.port, "/v1/models/Cloudflare%2Fclef-flash"), 200, NULL);
    expect(get(shared.port, "/v1/models/nope"), 404, "not_found");
    expect(get(shared.port, "/v1/models/%zz"), 404, "not_found");
}

static void health_metrics_page_and_description_are_served(void **state) {
    (void)state;
    static const char *const HEALTH[] = {"/health", "/healthz", "/v1/health"};
    for (size_t i = 0; i < 3; i++)
        expect(get(shared.port, HEALTH[i]), 200, "{\"status\": \"ok\", \"model\": \"clef-flash\"");
    expect(get(shared.port, "/ready"), 200, "\"ok\"");
    expect(get(shared.port, "/metrics"), 200, "\nclef_requests_total{status=\"200\"} ");
    expect(get(shared.port, "/"), 200, "\r\nContent-Security-Policy: default-src 'none'; ");
    answer a = get(shared.port, "/openapi.json");
    buf file = {0};
    assert_int_equal(file_read(&file, "src/server/openapi.json", 1 << 24, NULL), CLEF_OK);
    assert_string_equal(a.body, file.p);
    buf_free(&file);
    done(&a);
    answer head = ask_with(shared.port, "HEAD /health", "", (str){NULL, 0});
    assert_int_equal(head.status, 200);
    assert_string_equal(head.body, "");
    done(&head);
}

static void every_described_path_is_there(void **state) {
    (void)state;
    buf text = {0};
    arena mem = {0};
    const json *root = NULL;
    assert_int_equal(file_read(&text, "src/server/openapi.json", 1 << 24, NULL), CLEF_OK);
    assert_int_equal(json_parse(&root, (str){text.p, text.n}, "", &(json_limits){0}, &mem, NULL),
                     CLEF_OK);
    size_t n = 0;
    for (const json *p = json_get(root, STR("paths"))->first; p != NULL; p = p->next, n++) {
        const bool is_post = json_get(p, STR("post")) != NULL;
        char line[200];
        int at = snprintf(line, sizeof line, is_post ? "POST " : "GET ");
        for (size_t i = 0; i < p->name.n; i++) { /* "{account}" and "{model}" become a name */
            if (p->name.p[i] == '{') {
                at += snprintf(line + at, sizeof line - (size_t)at, "clef-flash");
                while (p->name.p[i] != '}') i++;
            } else {
                line[at++] = p->name.p[i];
            }
        }
        line[at] = '\0';
        answer a = ask_with(shared.port, line, "", is_post ? STR("{}") : (str){NULL, 0});
        if (a.status != (is_post ? 422 : 200)) fail_msg("%s: %d", line, a.status);
        done(&a);
    }
    assert_int_equal(n, 24);
    arena_free(&mem);
    buf_free(&text);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void every_error_body_has_a_hosted_shape(void **state) {
    (void)state;
    static const struct {
        const char *line, *headers, *body;
        int status;
        const char *words;
    } CASES[] = {
        {"GET /nope", "", NULL, 404, "\"error_type\": \"not_found\""},
        {"GET /v1/systemone", "", NULL, 405, "\r\nAllow: POST, OPTIONS\r\n"},
        {"DELETE /health", "", NULL, 405, "\r\nAllow: GET, HEAD, OPTIONS\r\n"},
        {"BREW /health", "", NULL, 405, "method_not_allowed"},
        {"POST /v1/systemone", "Content-Encoding: gzip\r\n", "x", 415, "unsupported_media_type"},
        {"POST /v1/systemone", "Content-Encoding: identity\r\n", "{}", 422, "\"loc\": [\"body\""},
        {"POST /v1/systemone", "Expect: tea\r\n", "{}", 417, "api_usage_error"},
        {"POST /v1/systemone", "", "", 422, "\"loc\": [\"body\", 0]"},
        {"POST /v1/systemone", "", "{:", 422, "\"loc\": [\"body\", 1]"},
        {"POST /v1/systemone", "", "[]", 422, "\"loc\": [\"body\"]"},
        {"POST /v1/systemone", "", "\"x\"", 422, "\"loc\": [\"body\"]"},
        {"POST /v1/systemone", "", "{\"state\":\"\xFF\"}", 422, "\"loc\": [\"body\", 10]"},
        {"POST /v1/systemone", "", "{\"state\":\"s\",\"questions\":{},\"videos\":[1]}", 422,
         "too_short"},
        {"POST /v1/systemone", "Content-Type: text/plain; charset=x\r\n", REQUEST, 200, "answers"},
        {"POST /v1/systemone?x=1", "Accept: */*\r\nAuthorization: Bearer any\r\n", REQUEST, 200,
         "answers"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const str body = {CASES[i].body, CASES[i].body == NULL ? 0 : strlen(CASES[i].body)};
        answer a = ask_with(shared.port, CASES[i].line, CASES[i].headers, body);
        if (a.status >= 400) assert_memory_equal(a.body, "{\"detail\": ", 11);
        assert_non_null(strstr(a.text.p, "\r\nx-typesafe-request-id: req_"));
        expect(a, CASES[i].status, CASES[i].words);
    }
}

static void a_sane_request_id_is_echoed(void **state) {
    (void)state;
    expect(ask_with(shared.port, "GET /health", "X-Request-Id: abc-1\r\n", (str){NULL, 0}), 200,
           "\r\nx-typesafe-request-id: abc-1\r\nX-Request-Id: abc-1\r\n");
    expect(ask_with(shared.port, "GET /health", "X-Request-Id: a\r\nX-TypeSafe-Request-Id: b\r\n",
                    (str){NULL, 0}),
           200, "\r\nX-Request-Id: b\r\n");
    expect(ask_with(shared.port, "GET /health", "X-Request-Id: a b\r\n", (str){NULL, 0}), 200,
           "\r\nX-Request-Id: req_");
}

static void a_body_beyond_the_limit_is_413_at_once(void **state) {
    (void)state;
    running v = START("--model", TOY, "--max-body", "2000");
    expect(
        talk(v.port,
             STR("POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2001\r\n\r\n"),
             PLENTY_MS),
        413, "request_too_large");
    expect(talk(v.port,
                STR("POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n"
                    "Expect: 100-continue\r\n\r\n"),
                PLENTY_MS),
           413, "request_too_large");
    buf body = {0};
    buf_add_text(&body, "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                        "chunked\r\n\r\n");
    for (int i = 0; i < 100; i++) buf_add_text(&body, "20\r\n                                \r\n");
    expect(talk(v.port, (str){body.p, body.n}, PLENTY_MS), 413, "request_too_large");
    buf_free(&body);
    /* The whole of a refused body may be sent: the answer still arrives. */
    buf large = {0};
    for (int i = 0; i < 3000000; i++) buf_add_char(&large, ' ');
    expect(ask_with(v.port, "POST /v1/systemone", "", (str){large.p, large.n}), 413, NULL);
    buf_free(&large);
    stop(&v);
}

static void a_megabyte_of_nesting_or_id_does_no_harm(void **state) {
    (void)state;
    enum { DEEP = 100000 };
    buf body = {0};
    buf_add_text(&body, "{\"state\":");
    for (int i = 0; i < DEEP; i++) buf_add_char(&body, '[');
    for (int i = 0; i < DEEP; i++) buf_add_char(&body, ']');
    buf_add_text(&body, ",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    expect(ask_with(shared.port, "POST /v1/systemone", "", (str){body.p, body.n}), 422,
           "nested deeper than 128 levels");
    body.n = 0;
    buf_add_text(&body, "{\"state\":\"s\",\"questions\":{\"");
    for (int i = 0; i < 1 << 20; i++) buf_add_char(&body, 'q');
    const size_t id_end = body.n;
    buf_add_text(&body, "\":{\"type\":\"noul\"}}}");
    expect(ask_with(shared.port, "POST /v1/systemone", "", (str){body.p, body.n}), 413,
           "max_tokens_exceeded");
    body.n = id_end;
    buf_add_text(&body, "\":{\"type\":\"x\"}}}");
    answer a = ask_with(shared.port, "POST /v1/systemone", "", (str){body.p, body.n});
    assert_true(a.text.n < 2000);
    expect(a, 422, "literal_error");
    buf_free(&body);
}

static void a_state_too_long_is_413_unless_cutting_is_asked_for(void **state) {
    (void)state;
    running v = START("--model", TOY, "--max-length", "300");
    buf body = {0};
    buf_add_text(&body, "{\"state\":\"");
    for (int i = 0; i < 500; i++) buf_add_text(&body, "a 1 ");
    const size_t end = body.n;
    buf_add_text(&body, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    expect(ask_with(v.port, "POST /v1/systemone", "", (str){body.p, body.n}), 413,
           "\"error_type\": \"max_tokens_exceeded\"");
    static const char *const OPT_IN[] = {"\"truncate\":true", "\"truncation\":\"state_tail\""};
    for (size_t i = 0; i < 2; i++) {
        body.n = end;
        buf_printf(&body, "\",%s,\"questions\":{\"q\":{\"type\":\"noul\"}}}", OPT_IN[i]);
        expect(ask_with(v.port, "POST /v1/systemone", "", (str){body.p, body.n}), 200,
               "\"x_truncated_tokens\": ");
    }
    stop(&v);
    v = START("--model", TOY, "--max-length", "300", "--truncate", "state");
    body.n = end;
    buf_add_text(&body, "\",\"truncation\":\"none\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    expect(ask_with(v.port, "POST /v1/systemone", "", (str){body.p, body.n}), 413, NULL);
    stop(&v);
    buf_free(&body);
}

/* A grey PNG of 2 x 2 pixels. */
#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR4nGNoaGBoaAAABgYCASzBUNcAAAAASUVORK5C" \
    "YII="

static void pictures_are_held_to_limits_and_never_fetched(void **state) {
    (void)state;
    running v =
        START("--model", (TESTDATA "toy-vision"), "--max-image-bytes", "1000", "--max-image-pixels",
              "1000", "--max-images", "2", "--max-media-pixels", "8191");
    static const struct {
        const char *images;
        int status;
        const char *words;
    } CASES[] = {
        {"[\"file:///etc/passwd\"]", 422, "[\"body\", \"images\", 0]"},
        {"[\"http://127.0.0.1/x.png\"]", 422, "[\"body\", \"images\", 0]"},
        {"[\"data:image/png;base64,AAAA\"]", 422, "[\"body\", \"images\", 0]"},
        {"[1]", 422, "[\"body\", \"images\", 0]"},
        {"[\"" PNG "\",\"" PNG "\",\"" PNG "\"]", 422, "at most 2 images, got 3"},
        {"[\"" PNG "\",\"" PNG "\"]", 422, "have 8192 pixels together, the limit is 8191"},
        {"[\"" PNG "\"]", 200, "\"answers\""},
        {"[{\"content_type\":\"image/png\",\"base64\":\"" PNG "\"}]", 200, "\"answers\""},
        {"[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64," PNG "\"}}]",
         200, "\"answers\""},
        {"[\"" PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG PNG "\"]", 422,
         "[\"body\", \"images\", 0]"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[4000];
        snprintf(body, sizeof body,
                 "{\"state\":\"\",\"images\":%s,\"questions\":{\"q\":{\"type\":\"noul\"}}}",
                 CASES[i].images);
        expect(post(v.port, body), CASES[i].status, CASES[i].words);
    }
    /* 2,000 x 2,000 pixels by its header, and nothing behind it. */
    expect(post(v.port,
                "{\"state\":\"\",\"images\":[\"iVBORw0KGgoAAAANSUhEUgAAB9AAAAfQCAAAAAC/U5ul\"]"
                ",\"questions\":{\"q\":{\"type\":\"noul\"}}}"),
           422, "[\"body\", \"images\", 0]");
    /* The records of a batch are held together, and so are their pictures. */
#define SEEN "{\"state\":\"\",\"images\":[\"" PNG "\"],\"questions\":{\"q\":{\"type\":\"noul\"}}}"
    expect(ask_with(v.port, "POST /v1/systemone/batch", "", STR("[" SEEN "," SEEN "]")), 422,
           "have 8192 pixels together, the limit is 8191");
    stop(&v);
}

/* The answer to a body compressed with zstd. */
static answer post_zstd(const char *line, const char *headers, str plain) {
    const size_t cap = ZSTD_compressBound(plain.n);
    char *coded = malloc(cap);
    assert_non_null(coded);
    const size_t n = ZSTD_compress(coded, cap, plain.p, plain.n, 1);
    assert_false(ZSTD_isError(n));
    char all[200];
    snprintf(all, sizeof all, "Content-Encoding: zstd\r\n%s", headers);
    answer a = ask_with(shared.port, line, all, (str){coded, n});
    free(coded);
    return a;
}

static void a_compressed_body_is_read(void **state) {
    (void)state;
    answer plain = post(shared.port, REQUEST);
    answer a = post_zstd("POST /v1/systemone", "", STR(REQUEST));
    assert_string_equal(a.body, plain.body);
    expect(a, 200, NULL);
    done(&plain);
    expect(ask_with(shared.port, "GET /health", "Content-Encoding: zstd\r\n", (str){NULL, 0}), 200,
           NULL);
}

static void a_compressed_body_that_cannot_be_read_is_refused(void **state) {
    (void)state;
    static const char ZSTD[] = "Content-Encoding: zstd\r\n";
    static const char ENVELOPE[] = "POST /accounts/a/ai/run/@cf/cloudflare/clef";
    expect(ask_with(shared.port, "POST /v1/systemone", ZSTD, STR(REQUEST)), 400,
           "is not what its Content-Encoding says: no zstd frame");
    expect(ask_with(shared.port, "POST /v1/systemone", ZSTD, STR("")), 400, "no zstd frame");
    expect(ask_with(shared.port, ENVELOPE, ZSTD, STR(REQUEST)), 400, "{\"success\": false, ");
    expect(post_zstd("POST /v1/systemone", "Content-Encoding: gzip\r\n", STR(REQUEST)), 415,
           "\r\nAccept-Encoding: zstd\r\n");
    expect(post_zstd("POST /v1/systemone", "", STR("{")), 422, "\"loc\": [\"body\", 1]");
    /* A few kilobytes that would become a body beyond the limit. */
    enum { TOO_MANY = (32 << 20) + 1 };
    char *zeros = calloc(TOO_MANY, 1);
    assert_non_null(zeros);
    expect(post_zstd("POST /v1/systemone", "", (str){zeros, TOO_MANY}), 413,
           "The body has 33554433 bytes; the limit is 33554432");
    free(zeros);
}

/* ---- framing ------------------------------------------------------------------------------- */

#define SMUGGLED "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void bad_framing_is_one_400_and_the_end(void **state) {
    (void)state;
    static const str CASES[] = {
        STR(POST_HEAD "Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}" SMUGGLED),
        STR(POST_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Content-Length: -1\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Content-Length: +5\r\n\r\n{}" SMUGGLED),
        STR(POST_HEAD "Content-Length: 99999999999999999999\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" SMUGGLED),
        STR(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "Content-Length : 2\r\n\r\n{}" SMUGGLED),
        STR(POST_HEAD "A: b\r\n c\r\n\r\n" SMUGGLED),
        STR(POST_HEAD "A: b\n\r\n" SMUGGLED),
        STR("GET /health HTTP/1.1\nHost: localhost\n\n" SMUGGLED),
        STR("GET /health HTTP/1.1\r\n\r\n" SMUGGLED),
        STR("GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n" SMUGGLED),
        STR("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"),
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        answer a = talk(shared.port, CASES[i], PLENTY_MS);
        if (a.status != 400 || a.n != 1 || !a.closed)
            fail_msg("case %zu: %d answers, closed %d: %s", i, a.n, a.closed, a.text.p);
        assert_memory_equal(a.body, "{\"detail\": ", 11);
        done(&a);
    }
}

static void a_body_that_breaks_after_its_answer_gets_no_second_one(void **state) {
    (void)state;
    answer a =
        talk(shared.port,
             STR("POST /nope HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "zz\r\n" SMUGGLED),
             PLENTY_MS);
    assert_true(a.closed);
    assert_int_equal(a.n, 1);
    assert_true(a.status == 404 || a.status == 400);
    done(&a);
}

static void long_heads_are_414_and_431(void **state) {
    (void)state;
    buf bytes = {0};
    buf_add_text(&bytes, "GET /");
    for (int i = 0; i < 65536; i++) buf_add_char(&bytes, 'a');
    buf_add_text(&bytes, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS), 414, "request_too_large");
    bytes.n = 0;
    buf_add_text(&bytes, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    for (int i = 0; i < 9000; i++) buf_add_char(&bytes, 'a');
    buf_add_text(&bytes, "\r\n\r\n");
    expect(talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS), 431, "request_too_large");
    bytes.n = 0;
    buf_add_text(&bytes, "GET /health HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 200; i++) buf_printf(&bytes, "X%d: y\r\n", i);
    buf_add_text(&bytes, "\r\n");
    expect(talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS), 431, "request_too_large");
    buf_free(&bytes);
}

static void a_chunked_body_and_the_next_request_are_both_answered(void **state) {
    (void)state;
    buf bytes = {0};
    buf_printf(&bytes, POST_HEAD "Transfer-Encoding: chunked\r\n\r\n");
    for (const char *at = REQUEST; *at != '\0'; at++) buf_printf(&bytes, "1;x=y\r\n%c\r\n", *at);
    buf_add_text(&bytes, "0\r\nX-Trailer: t\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n"
                         "Connection: close\r\n\r\n");
    answer a = talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.text.p, "\"answers\""));
    assert_non_null(strstr(a.body, "\"status\": \"ok\""));
    done(&a);
    buf_free(&bytes);
}

static void pipelined_requests_are_answered_in_order(void **state) {
    (void)state;
    buf bytes = {0};
    for (int i = 0; i < 20; i++) {
        char body[120];
        const int n = snprintf(body, sizeof body,
                               "{\"state\":\"s\",\"questions\":{\"q%d\":{"
                               "\"type\":\"noul\"}}}",
                               i);
        buf_printf(&bytes, POST_HEAD "Content-Length: %d\r\n%s\r\n%s", n,
                   i == 19 ? "Connection: close\r\n" : "", body);
    }
    answer a = talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS);
    assert_int_equal(a.n, 20);
    const char *at = a.text.p;
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "\"q%d\"", i);
        at = strstr(at, id);
        assert_non_null(at);
    }
    done(&a);
    buf_free(&bytes);
}

static void what_came_before_bad_framing_is_answered(void **state) {
    (void)state;
    answer a =
        talk(shared.port, STR("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health\r\n\r\n"),
             PLENTY_MS);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.status, 200);
    assert_true(a.closed);
    assert_non_null(strstr(a.body, "api_usage_error"));
    done(&a);
}

static void expect_100_continue_is_answered_before_the_body(void **state) {
    (void)state;
    const int fd = connect_to(shared.port);
    char head[200];
    const int n = snprintf(head, sizeof head,
                           POST_HEAD "Expect: 100-continue\r\nConnection: close\r\n"
                                     "Content-Length: %zu\r\n\r\n",
                           strlen(REQUEST));
    send_all(fd, (str){head, (size_t)n});
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PLENTY_MS), 1);
    char block[100] = "";
    assert_true(recv(fd, block, sizeof block - 1, 0) > 0);
    assert_memory_equal(block, "HTTP/1.1 100 ", 13);
    send_all(fd, STR(REQUEST));
    answer a = finish(fd);
    expect(a, 200, "\"answers\"");
}

static void http_1_0_is_answered_and_closed(void **state) {
    (void)state;
    answer a = talk(shared.port, STR("GET /health HTTP/1.0\r\n\r\n"), PLENTY_MS);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.status, 200);
    assert_true(a.closed);
    done(&a);
}

/* ---- who may ask --------------------------------------------------------------------------- */

static void other_hosts_and_origins_are_403(void **state) {
    (void)state;
    answer a = talk(shared.port,
                    STR("GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
                    PLENTY_MS);
    expect(a, 403, "permission_error");
    expect(ask_with(shared.port, "POST /v1/systemone", "Origin: http://evil.example\r\n",
                    STR(REQUEST)),
           403, "permission_error");
    answer good = ask_with(shared.port, "POST /v1/systemone", "Origin: http://localhost:3000\r\n",
                           STR(REQUEST));
    assert_non_null(
        strstr(good.text.p, "\r\nAccess-Control-Allow-Origin: http://localhost:3000\r\n"));
    assert_non_null(
        strstr(good.text.p, "\r\nAccess-Control-Expose-Headers: x-typesafe-request-id, "));
    expect(good, 200, "\r\nVary: Origin\r\n");
    answer none = post(shared.port, REQUEST);
    assert_null(strstr(none.text.p, "Access-Control-Allow-Origin"));
    done(&none);
}

static answer ask_at(const char *target, const char *host) {
    buf bytes = {0};
    buf_printf(&bytes,
               "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
               target, host, strlen(REQUEST), REQUEST);
    answer a = talk(shared.port, (str){bytes.p, bytes.n}, PLENTY_MS);
    buf_free(&bytes);
    return a;
}

/* RFC 9112, 3.2.2: what the target says counts, not the Host header. */
static void a_target_with_a_host_is_read_and_its_host_checked(void **state) {
    (void)state;
    static const struct {
        const char *target, *host;
        int status;
        const char *words;
    } CASES[] = {
        {"http://localhost/v1/systemone", "localhost", 200, "\"answers\""},
        {"HTTP://LocalHost:1/v1/systemone?a=b", "localhost", 200, "\"answers\""},
        {"http://127.0.0.1:80/v1/systemone/", "evil.example", 200, "\"answers\""},
        {"http://[::1]/v1/systemone", "localhost", 200, "\"answers\""},
        {"http://evil.example/v1/systemone", "localhost", 403, "permission_error"},
        {"http://localhost.evil.example/v1/systemone", "localhost", 403, "permission_error"},
        {"http://localhost:x/v1/systemone", "localhost", 403, "permission_error"},
        {"http://localhost:999999/v1/systemone", "localhost", 403, "permission_error"},
        {"http://localhost%2F/v1/systemone", "localhost", 403, "permission_error"},
        {"http://localhost\\@evil.example/v1/systemone", "localhost", 400, "api_usage_error"},
        {"http://localhost@evil.example/v1/systemone", "localhost", 400, "api_usage_error"},
        {"http://evil.example@localhost/v1/systemone", "localhost", 400, "api_usage_error"},
        {"https://localhost/v1/systemone", "localhost", 400, "api_usage_error"},
        {"http:///v1/systemone", "localhost", 400, "api_usage_error"},
        {"http://localhost", "localhost", 405, "\r\nAllow: GET, HEAD, OPTIONS\r\n"},
        {"http://localhost?/v1/systemone", "localhost", 405, "\r\nAllow: GET, HEAD"},
        {"http://localhost//v1/systemone", "localhost", 404, "No such path: //v1/systemone"},
        {"http://localhost/http://localhost/v1/systemone", "localhost", 404, "not_found"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect(ask_at(CASES[i].target, CASES[i].host), CASES[i].status, CASES[i].words);
}

static void a_preflight_is_204(void **state) {
    (void)state;
    answer a = ask_with(shared.port, "OPTIONS /v1/systemone",
                        "Origin: http://127.0.0.1:5173\r\nAccess-Control-Request-Method: POST\r\n"
                        "Access-Control-Request-Headers: authorization, x-a\r\n",
                        (str){NULL, 0});
    assert_non_null(strstr(a.text.p, "\r\nAccess-Control-Allow-Methods: GET, POST, OPTIONS\r\n"));
    assert_non_null(strstr(a.text.p, "\r\nAccess-Control-Allow-Headers: authorization, x-a\r\n"));
    assert_non_null(strstr(a.text.p, "\r\nAccess-Control-Max-Age: 600\r\n"));
    assert_string_equal(a.body, "");
    expect(a, 204, "\r\nAccess-Control-Allow-Origin: http://127.0.0.1:5173\r\n");
    expect(
        ask_with(shared.port, "OPTIONS /nowhere", "Origin: http://localhost\r\n", (str){NULL, 0}),
        204, "\r\nAccess-Control-Allow-Origin: http://localhost\r\n");
    expect(ask_with(shared.port, "OPTIONS /", "Origin: http://evil.example\r\n", (str){NULL, 0}),
           403, NULL);
}

static void a_key_is_asked_for_where_one_is_set(void **state) {
    (void)state;
    folder_write(&dir, "keys", STR("good-key\n"));
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(&dir, "keys"));
    running v = START("--model", TOY, "--api-key-file", path);
    static const char *const BAD[] = {"",
                                      "Authorization: Bearer good-ke\r\n",
                                      "Authorization: Bearer good-key2\r\n",
                                      "Authorization: Bearer \r\n",
                                      "Authorization: Basic good-key\r\n",
                                      "Authorization: good-key\r\n",
                                      "X-API-Key: x\r\n"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        answer a = ask_with(v.port, "POST /v1/systemone", BAD[i], STR("{:"));
        assert_non_null(strstr(a.text.p, "\r\nWWW-Authenticate: Bearer\r\n"));
        expect(a, 401, "\"error_type\": \"authentication_error\"");
    }
    static const char *const GOOD[] = {"Authorization: Bearer good-key\r\n",
                                       "authorization: bearer good-key\r\n",
                                       "X-API-Key: good-key\r\n"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        expect(ask_with(v.port, "POST /v1/systemone", GOOD[i], STR(REQUEST)), 200, "answers");
    expect(get(v.port, "/health"), 200, NULL);
    expect(get(v.port, "/ready"), 200, NULL);
    expect(get(v.port, "/"), 200, NULL);
    expect(get(v.port, "/metrics"), 401, NULL);
    expect(get(v.port, "/nope"), 404, NULL); /* the route comes before the key */
    expect(
        ask_with(v.port, "OPTIONS /v1/systemone", "Origin: http://localhost\r\n", (str){NULL, 0}),
        204, NULL);
    /* A new file, and a log that was moved away. */
    folder_write(&dir, "keys", STR("new-key\n"));
    char moved[1024];
    snprintf(moved, sizeof moved, "%s", folder_path(&dir, "moved"));
    assert_int_equal(rename(folder_path(&dir, v.log), moved), 0);
    kill(v.pid, SIGHUP);
    await_log(&v, "log opened again");
    expect(ask_with(v.port, "POST /v1/systemone", GOOD[0], STR(REQUEST)), 401, NULL);
    expect(
        ask_with(v.port, "POST /v1/systemone", "Authorization: Bearer new-key\r\n", STR(REQUEST)),
        200, NULL);
    stop(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gets_the_librarys_answer),
        cmocka_unit_test(all_paths_of_the_protocol_answer),
        cmocka_unit_test(an_answer_names_the_served_model),
        cmocka_unit_test(a_kept_answer_is_the_same_bytes),
        cmocka_unit_test(ids_of_any_kind_come_back),
        cmocka_unit_test(the_envelope_holds_answers_and_errors),
        cmocka_unit_test(the_models_name_in_a_path_may_be_encoded),
        cmocka_unit_test(a_batch_is_answered_in_order_or_not_at_all),
        cmocka_unit_test(a_batch_answer_equals_the_single_one),
        cmocka_unit_test(other_dialects_are_named),
        cmocka_unit_test(models_serve_both_families_of_clients),
        cmocka_unit_test(health_metrics_page_and_description_are_served),
        cmocka_unit_test(every_described_path_is_there),
        cmocka_unit_test(every_error_body_has_a_hosted_shape),
        cmocka_unit_test(a_sane_request_id_is_echoed),
        cmocka_unit_test(a_body_beyond_the_limit_is_413_at_once),
        cmocka_unit_test(a_megabyte_of_nesting_or_id_does_no_harm),
        cmocka_unit_test(a_state_too_long_is_413_unless_cutting_is_asked_for),
        cmocka_unit_test(pictures_are_held_to_limits_and_never_fetched),
        cmocka_unit_test(a_compressed_body_is_read),
        cmocka_unit_test(a_compressed_body_that_cannot_be_read_is_refused),
        cmocka_unit_test(bad_framing_is_one_400_and_the_end),
        cmocka_unit_test(a_body_that_breaks_after_its_answer_gets_no_second_one),
        cmocka_unit_test(long_heads_are_414_and_431),
        cmocka_unit_test(a_chunked_body_and_the_next_request_are_both_answered),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(what_came_before_bad_framing_is_answered),
        cmocka_unit_test(expect_100_continue_is_answered_before_the_body),
        cmocka_unit_test(http_1_0_is_answered_and_closed),
        cmocka_unit_test(other_hosts_and_origins_are_403),
        cmocka_unit_test(a_target_with_a_host_is_read_and_its_host_checked),
        cmocka_unit_test(a_preflight_is_204),
        cmocka_unit_test(a_key_is_asked_for_where_one_is_set),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
