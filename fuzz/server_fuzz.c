/* server_fuzz.c - any bytes through the framing, the routes and the checks of the server.
 *
 * The first byte says in which pieces the rest arrives. What the framing takes must be the same in
 * pieces and at once. Each request that it lets through goes to the routes of a server whose model
 * is not there yet: every answer is a documented status, its error body has one of the two shapes,
 * and a body that a route would ask the model about comes out as the 503 of a server that is
 * loading. */
#include <assert.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "server/service.h"
#include "server/wire.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_BODY = 1 << 16 };

static service s = {
    .rules = {.limits = {.max_depth = 16,
                         .max_questions = 8,
                         .max_options = 8,
                         .max_levels = 4,
                         .max_images = 2,
                         .max_batch = 4,
                         .max_tree_bytes = 1 << 22},
              .max_body = MAX_BODY,
              .max_held = 64 * (size_t)MAX_BODY,
              .names = {.served = "clef-flash"},
              .guard = {.loopback = true}},
};

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    if (keys_open(&s.keys, NULL, NULL, NULL) != CLEF_OK ||
        log_open(&s.log, &(log_options){.path = "none"}, NULL) != CLEF_OK)
        abort();
    return 0;
}

/* ---- the head of a request that the framing let through ---- */

typedef struct {
    call c;
    http_header headers[WIRE_MAX_HEADERS];
    bool chunked;
} head;

static str until(str *rest, const char *mark) {
    const size_t n_mark = strlen(mark);
    const char *at = rest->p;
    while ((size_t)(at - rest->p) + n_mark <= rest->n && memcmp(at, mark, n_mark) != 0) at++;
    assert((size_t)(at - rest->p) + n_mark <= rest->n);
    const str found = {rest->p, (size_t)(at - rest->p)};
    const size_t used = found.n + n_mark;
    *rest = (str){rest->p + used, rest->n - used};
    return found;
}

static str read_head(head *h, str bytes) {
    *h = (head){.c = {.headers = h->headers, .queue_s = -1}};
    if (bytes.n > 2 && memcmp(bytes.p, "\r\n", 2) == 0) bytes = (str){bytes.p + 2, bytes.n - 2};
    h->c.method = until(&bytes, " ");
    const str target = until(&bytes, " ");
    const char *query = memchr(target.p, '?', target.n);
    const str all = {target.p, query == NULL ? target.n : (size_t)(query - target.p)};
    const bool split = wire_split_target(all, &h->c.host, &h->c.path);
    assert(split);
    until(&bytes, "\r\n");
    for (;;) {
        str line = until(&bytes, "\r\n");
        if (line.n == 0) break;
        const str name = until(&line, ":");
        while (line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t'))
            line = (str){line.p + 1, line.n - 1};
        h->headers[h->c.n_headers++] = (http_header){name, line};
        if (str_same_word(name, "transfer-encoding")) h->chunked = true;
    }
    return bytes;
}

static void read_chunks(buf *out, str bytes) {
    for (;;) {
        const str line = until(&bytes, "\r\n");
        const size_t size = strtoul(line.p, NULL, 16);
        if (size == 0) return;
        assert(size <= bytes.n);
        buf_add(out, bytes.p, size);
        bytes = (str){bytes.p + size + 2, bytes.n - size - 2};
    }
}

/* ---- what came of it ---- */

static bool is_documented(int status) {
    static const int STATUSES[] = {200, 204, 400, 403, 404, 405, 413, 415, 417, 422, 503};
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++)
        if (STATUSES[i] == status) return true;
    return false;
}

static void check_error(const reply *r) {
    arena mem = {0};
    const json *root = NULL;
    const str body = {r->body.p, r->body.n};
    assert(utf8_check(body.p, body.n) == body.n);
    if (json_parse(&root, body, "error", &(json_limits){0}, &mem, NULL) != CLEF_OK) abort();
    const json *detail = json_get(root, STR("detail"));
    if (detail == NULL) { /* an envelope */
        assert(json_get(root, STR("success"))->kind == JSON_FALSE);
        assert(json_get(json_get(root, STR("errors"))->first, STR("message"))->text.n > 0);
    } else if (r->status == 422) {
        assert(detail->kind == JSON_ARRAY && detail->n > 0);
        for (const json *p = detail->first; p != NULL; p = p->next) {
            assert(str_equal(json_get(p, STR("loc"))->first->text, STR("body")));
            assert(json_get(p, STR("msg"))->text.n > 0);
        }
    } else {
        assert(detail->kind == JSON_OBJECT);
        assert(json_get(detail, STR("message"))->text.n > 0);
    }
    arena_free(&mem);
}

static void answer(str bytes) {
    head h;
    reply r = {0};
    buf body = {0};
    const str rest = read_head(&h, bytes);
    call_set_id(&h.c);
    if (!service_head(&s, &h.c, &r)) {
        if (h.chunked)
            read_chunks(&body, rest);
        else
            buf_add(&body, rest.p, rest.n);
        if (service_decode(&s, &h.c, &body, &r)) {
            h.c.body = (str){body.p, body.n};
            service_answer(&s, &h.c, &r);
        }
        service_let_go(&s, &h.c);
    }
    assert(is_documented(r.status));
    if (r.status >= 400) check_error(&r);
    service_finish_headers(&s, &h.c, &r);
    service_log(&s, &h.c, &r);
    for (size_t i = 0; i < r.headers.n; i++) /* nobody can begin a header of his own */
        assert((r.headers.p[i] != '\n') || (i > 0 && r.headers.p[i - 1] == '\r'));
    reply_free(&r);
    buf_free(&body);
}

/* Feeds all, in pieces of `piece` bytes; the offset where it ends, and whether it ended badly. */
static size_t feed(str bytes, size_t piece, bool *bad, bool answers) {
    wire w = {.max_body = MAX_BODY};
    size_t at = 0, begin = 0;
    *bad = false;
    while (at < bytes.n && !*bad) {
        const size_t n = bytes.n - at < piece ? bytes.n - at : piece;
        size_t used = 0;
        const wire_result result = wire_feed(&w, bytes.p + at, n, &used);
        assert(used <= n && (result != WIRE_MORE || used == n));
        at += used;
        *bad = result == WIRE_BAD;
        if (result != WIRE_END) continue;
        if (answers) answer((str){bytes.p + begin, at - begin});
        begin = at;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1) return 0;
    const str bytes = {(const char *)data + 1, n - 1};
    bool bad_whole, bad_pieces;
    const size_t whole = feed(bytes, SIZE_MAX, &bad_whole, true);
    const size_t pieces = feed(bytes, (size_t)data[0] % 32 + 1, &bad_pieces, false);
    assert(whole == pieces && bad_whole == bad_pieces);
    return 0;
}
