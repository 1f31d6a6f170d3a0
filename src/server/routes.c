/* routes.c - paths to answers: the table of routes, the checks that come before a body is read, and
 * the routes that need no model.
 *
 * The order of the checks is the API's: framing (before this file), route, key, size, then in
 * decide.c JSON, fields, model, media, length, capacity. The checks of Host and Origin come first
 * of all, because they are about who is asking and hold for every path. */
#include "server/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "server/coding.h"
#include "server/decide.h"
#include "server/generated.h"
#include "text/pyjson.h"

typedef enum {
    ROUTE_DECIDE,
    ROUTE_DECISIONS,
    ROUTE_ENVELOPE,
    ROUTE_BATCH,
    ROUTE_MODELS,
    ROUTE_MODEL,
    ROUTE_HEALTH,
    ROUTE_READY,
    ROUTE_METRICS,
    ROUTE_OPENAPI,
    ROUTE_PAGE
} route_kind;

typedef struct {
    const char *path; /* '*' stands for one segment, "**" at the end for the rest */
    route_kind kind;
    bool post; /* else GET and HEAD */
    bool open; /* needs no key */
} route;

static const route ROUTES[] = {
    {"/v1/systemone", ROUTE_DECIDE, true, false},
    {"/systemone", ROUTE_DECIDE, true, false},
    {"/api/v1/systemone", ROUTE_DECIDE, true, false},
    {"/v1/v1/systemone", ROUTE_DECIDE, true, false},
    {"/v1/jev", ROUTE_DECIDE, true, false},
    {"/v1/decisions", ROUTE_DECISIONS, true, false},
    {"/api/v1/decisions", ROUTE_DECISIONS, true, false},
    {"/api/alpha/decisions", ROUTE_DECISIONS, true, false},
    {"/client/v4/accounts/*/ai/run/@cf/cloudflare/clef", ROUTE_ENVELOPE, true, false},
    {"/client/v4/accounts/*/ai/run/@cf/cloudflare/clef-flash", ROUTE_ENVELOPE, true, false},
    {"/accounts/*/ai/run/@cf/cloudflare/clef", ROUTE_ENVELOPE, true, false},
    {"/accounts/*/ai/run/@cf/cloudflare/clef-flash", ROUTE_ENVELOPE, true, false},
    {"/v1/systemone/batch", ROUTE_BATCH, true, false},
    {"/v1/models", ROUTE_MODELS, false, false},
    {"/models", ROUTE_MODELS, false, false},
    {"/api/v1/models", ROUTE_MODELS, false, false},
    {"/v1/models/**", ROUTE_MODEL, false, false},
    {"/health", ROUTE_HEALTH, false, true},
    {"/healthz", ROUTE_HEALTH, false, true},
    {"/v1/health", ROUTE_HEALTH, false, true},
    {"/ready", ROUTE_READY, false, true},
    {"/metrics", ROUTE_METRICS, false, false},
    {"/openapi.json", ROUTE_OPENAPI, false, false},
    {"/", ROUTE_PAGE, false, true},
};
enum { N_ROUTES = sizeof ROUTES / sizeof *ROUTES, MAX_PATH_SHOWN = 200 };

/* ---- finding a route ----------------------------------------------------------------------- */

/* Bytes of the path that stand for a character of a pattern; 0: none do. Clients may encode the '@'
 * of a model's name and the slashes behind it, and nothing else. */
static size_t stands_for(str path, char wanted, bool in_name) {
    if (path.n > 0 && path.p[0] == wanted) return 1;
    const char *code = wanted == '@' ? "%40" : wanted == '/' && in_name ? "%2F" : NULL;
    return code != NULL && path.n >= 3 && strncasecmp(path.p, code, 3) == 0 ? 3 : 0;
}

static bool path_matches(const char *pattern, str path) {
    size_t at = 0;
    bool in_name = false;
    for (; *pattern != '\0'; pattern++) {
        if (strcmp(pattern, "**") == 0) return at < path.n;
        if (*pattern == '*') {
            const size_t before = at;
            while (at < path.n && path.p[at] != '/') at++;
            if (at == before) return false;
        } else {
            in_name = in_name || *pattern == '@';
            const size_t n = stands_for((str){path.p + at, path.n - at}, *pattern, in_name);
            if (n == 0) return false;
            at += n;
        }
    }
    return at == path.n;
}

/* A trailing slash is somebody's base URL and means nothing. */
static const route *find_route(str path) {
    if (path.n > 1 && path.p[path.n - 1] == '/') path.n--;
    for (size_t i = 0; i < N_ROUTES; i++)
        if (path_matches(ROUTES[i].path, path)) return &ROUTES[i];
    return NULL;
}

static bool method_fits(const route *t, str method) {
    if (t->post) return str_equal(method, STR("POST"));
    return str_equal(method, STR("GET")) || str_equal(method, STR("HEAD"));
}

/* ---- before the body ----------------------------------------------------------------------- */

/* The key in "Authorization: Bearer KEY" or "X-API-Key: KEY". */
static str presented_key(const call *c) {
    const str header = call_header(c, "authorization");
    if (header.p == NULL) return call_header(c, "x-api-key");
    static const char SCHEME[] = "bearer ";
    const size_t n = sizeof SCHEME - 1;
    if (header.n < n || !str_same_word((str){header.p, n}, SCHEME)) return (str){NULL, 0};
    str key = {header.p + n, header.n - n};
    while (key.n > 0 && key.p[0] == ' ') key = (str){key.p + 1, key.n - 1};
    return key;
}

/* True when the request may go on. */
static bool check_key(service *s, call *c, reply *r) {
    if (!keys_needed(s->keys)) return true;
    const str key = presented_key(c);
    if (key.p != NULL) c->key = keys_find(s->keys, key);
    if (c->key > 0) return true;
    reply_error(r, 401, reply_error_type(401), "%s",
                key.p == NULL ? "An API key is needed: Authorization: Bearer KEY"
                              : "The API key is not one of this server's");
    return false;
}

static bool check_visitor(const service *s, const call *c, reply *r) {
    const str host = c->host.p != NULL ? c->host : call_header(c, "host");
    const str origin = call_header(c, "origin");
    if (host.p != NULL && !guard_host(&s->rules.guard, host)) {
        reply_error(r, 403, reply_error_type(403),
                    "This server does not answer to that Host; --allow-host adds one");
        return false;
    }
    if (origin.p != NULL && !guard_origin(&s->rules.guard, origin)) {
        reply_error(r, 403, reply_error_type(403),
                    "Pages of that Origin may not ask; --allow-origin adds one");
        return false;
    }
    return true;
}

static void preflight(const call *c, reply *r) {
    const str asked = call_header(c, "access-control-request-headers");
    reply_reset(r, 204);
    reply_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    if (asked.p != NULL && asked.n < 400)
        reply_header(r, "Access-Control-Allow-Headers", "%.*s", STR_ARG(asked));
    reply_header(r, "Access-Control-Max-Age", "600");
}

static bool is_zstd(const call *c) {
    return str_same_word(call_header(c, "content-encoding"), "zstd");
}

static bool has_other_coding(const call *c) {
    const str coding = call_header(c, "content-encoding");
    return coding.n > 0 && !str_same_word(coding, "identity") && !is_zstd(c);
}

/* The length that the head states, or SIZE_MAX; its digits were checked with the framing. */
static size_t stated_length(const call *c) {
    const str value = call_header(c, "content-length");
    size_t n = 0;
    for (size_t i = 0; i < value.n; i++)
        if (!size_mul(&n, n, 10) || !size_add(&n, n, (size_t)(value.p[i] - '0'))) return SIZE_MAX;
    return n;
}

static bool refuse_body(const service *s, const call *c, reply *r) {
    const str expect = call_header(c, "expect");
    if (expect.p != NULL && !str_same_word(expect, "100-continue")) {
        reply_error(r, 417, reply_error_type(417), "Only 100-continue can be expected");
        return true;
    }
    if (stated_length(c) > s->rules.max_body) {
        reply_error(r, 413, reply_error_type(413), "The body has %zu bytes; the limit is %zu",
                    stated_length(c), s->rules.max_body);
        return true;
    }
    if (has_other_coding(c) || call_count_header(c, "content-encoding") > 1) {
        reply_error(r, 415, reply_error_type(415),
                    "The body has a Content-Encoding that is not read; zstd and identity are");
        reply_header(r, "Accept-Encoding", "zstd"); /* RFC 9110, section 15.5.16 */
        return true;
    }
    return false;
}

/* What can be said of a request on a known path before its body is read. */
static bool answer_early(service *s, call *c, const route *t, reply *r) {
    if (!method_fits(t, c->method)) {
        reply_error(r, 405, reply_error_type(405), "This path takes %s",
                    t->post ? "POST" : "GET and HEAD");
        reply_header(r, "Allow", "%s", t->post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
        return true;
    }
    if (!t->open && !check_key(s, c, r)) return true;
    return refuse_body(s, c, r);
}

bool service_head(service *s, call *c, reply *r) {
    if (!check_visitor(s, c, r)) return true;
    if (str_equal(c->method, STR("OPTIONS"))) { /* on any path: pages are to see its 404 */
        preflight(c, r);
        return true;
    }
    const route *t = find_route(c->path);
    if (t == NULL) {
        const int shown = c->path.n > MAX_PATH_SHOWN ? MAX_PATH_SHOWN : (int)c->path.n;
        reply_error(r, 404, reply_error_type(404), "No such path: %.*s", shown, c->path.p);
        return true;
    }
    if (!answer_early(s, c, t, r)) return false;
    if (t->kind == ROUTE_ENVELOPE && r->status >= 400) decide_wrap(r);
    return true;
}

/* The body as it was before it was compressed; false when *r says what is wrong. */
static bool decode_body(service *s, call *c, buf *body, reply *r) {
    const str coded = {body->p, body->n};
    clef_error why = {0};
    buf plain = {0};
    size_t size = 0;
    clef_status status = coding_size(&size, coded, &why);
    if (status == CLEF_OK && size > s->rules.max_body) {
        reply_error(r, 413, reply_error_type(413), "The body has %zu bytes; the limit is %zu", size,
                    s->rules.max_body);
        return false;
    }
    if (status == CLEF_OK)
        status = service_hold(s, c, size) ? coding_decode(&plain, size, coded, &why)
                                          : clef_fail_memory(&why);
    if (status == CLEF_OK) {
        buf_free(body);
        *body = plain;
        return true;
    }
    if (status == CLEF_ERR_MEMORY)
        reply_error(r, 503, reply_error_type(503), "The server is short of memory");
    else
        reply_error(r, 400, reply_error_type(400),
                    "The body is not what its Content-Encoding says: %s", why.text);
    return false;
}

bool service_decode(service *s, call *c, buf *body, reply *r) {
    const route *t = find_route(c->path);
    if (!t->post || !is_zstd(c) || decode_body(s, c, body, r)) return true;
    if (t->kind == ROUTE_ENVELOPE) decide_wrap(r);
    return false;
}

/* ---- routes without a model ---------------------------------------------------------------- */

static void add_openai_model(buf *out, service *s) {
    buf_add_text(out, "{\"id\": ");
    pyjson_string(out, str_of(s->rules.names.served));
    buf_printf(out, ", \"object\": \"model\", \"created\": %lld, \"owned_by\": \"Cloudflare\"}",
               atomic_load(&s->created));
}

static void models(service *s, reply *r) {
    const service_rules *rules = &s->rules;
    const time_t created = (time_t)atomic_load(&s->created);
    struct tm day;
    char date[16];
    gmtime_r(&created, &day);
    strftime(date, sizeof date, "%Y-%m-%d", &day);
    reply_reset(r, 200);
    buf *out = &r->body;
    buf_add_text(out, "{\"object\": \"list\", \"data\": [");
    add_openai_model(out, s);
    buf_add_text(out, "], \"models\": [");
    const char *name;
    for (size_t i = 0; (name = names_list(&rules->names, i)) != NULL; i++) {
        if (i > 0) buf_add_text(out, ", ");
        buf_add_text(out, "{\"name\": ");
        pyjson_string(out, str_of(name));
        buf_add_text(out, ", \"description\": ");
        buf description = {0};
        if (i == 0)
            buf_printf(&description, "%s, served locally by clef.c", name);
        else
            buf_printf(&description, "Alias of %s", rules->names.served);
        pyjson_string(out, (str){description.p, description.n});
        if (description.failed) out->failed = true;
        buf_free(&description);
        buf_printf(out, ", \"release_date\": \"%s\"}", date);
    }
    buf_add_text(out, "]}");
}

/* Undoes %XX; false when the result is no plain text or a sign is cut. */
static bool decode_percent(buf *out, str text) {
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%') {
            buf_add_char(out, text.p[i]);
            continue;
        }
        char digits[3] = {0}, *end = NULL;
        if (text.n - i < 3) return false;
        memcpy(digits, text.p + i + 1, 2);
        const unsigned long value = strtoul(digits, &end, 16);
        if (end != digits + 2 || value < 0x20 || value >= 0x7F) return false;
        buf_add_char(out, (char)value);
        i += 2;
    }
    return !out->failed;
}

static void one_model(service *s, const call *c, reply *r) {
    static const char PREFIX[] = "/v1/models/";
    const str asked = {c->path.p + sizeof PREFIX - 1, c->path.n - (sizeof PREFIX - 1)};
    buf name = {0};
    if (decode_percent(&name, asked) && name.n > 0 &&
        names_match(&s->rules.names, (str){name.p, name.n})) {
        reply_reset(r, 200);
        add_openai_model(&r->body, s);
    } else {
        reply_error(r, 404, reply_error_type(404), "No such model");
    }
    buf_free(&name);
}

static void health(service *s, reply *r, bool must_be_ready) {
    static const char *const NAMES[] = {"loading", "ok", "stopping"};
    const int state = atomic_load(&s->state);
    if (must_be_ready && state != SERVICE_READY) {
        reply_error(r, 503, reply_error_type(503), "The server is %s", NAMES[state]);
        return;
    }
    reply_reset(r, 200);
    buf_printf(&r->body, "{\"status\": \"%s\", \"model\": ", NAMES[state]);
    pyjson_string(&r->body, str_of(s->rules.names.served));
    if (state == SERVICE_READY) {
        clef_load load;
        clef_engine_stats(s->engine, &load);
        buf_printf(
            &r->body,
            ", \"queue\": {\"waiting\": %u, \"running\": %u, \"limit\": %u, \"refused\": %llu}",
            load.waiting, load.running, load.queue, (unsigned long long)load.refused);
    }
    buf_add_char(&r->body, '}');
}

static void write_metrics(service *s, reply *r) {
    clef_load load;
    metrics_facts facts = {.anonymous_bytes = memory_anonymous()};
    if (atomic_load(&s->state) == SERVICE_READY) {
        clef_engine_stats(s->engine, &load);
        facts.load = &load;
        facts.load_s = s->load_s; /* the loader's until then */
    }
    if (s->kept != NULL)
        answers_size(s->kept, &facts.answer_cache_bytes, &facts.answer_cache_entries);
    reply_reset(r, 200);
    r->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_write(&r->body, &s->counts, &facts);
}

static void page(reply *r) {
    reply_reset(r, 200);
    r->type = "text/html; charset=utf-8";
    r->fixed = (str){(const char *)page_html, page_html_len};
    reply_header(r, "Content-Security-Policy", "%s", page_csp);
    reply_header(r, "X-Content-Type-Options", "nosniff");
    reply_header(r, "Referrer-Policy", "no-referrer");
}

static void openapi(reply *r) {
    reply_reset(r, 200);
    r->fixed = (str){(const char *)openapi_json, openapi_json_len};
}

void service_answer(service *s, call *c, reply *r) {
    const route *t = find_route(c->path);
    switch (t->kind) {
    case ROUTE_DECIDE:
        decide(s, c, r);
        break;
    case ROUTE_DECISIONS:
        decide_by_dialect(s, c, r);
        break;
    case ROUTE_ENVELOPE:
        decide_enveloped(s, c, r);
        break;
    case ROUTE_BATCH:
        decide_batch(s, c, r);
        break;
    case ROUTE_MODELS:
        models(s, r);
        break;
    case ROUTE_MODEL:
        one_model(s, c, r);
        break;
    case ROUTE_HEALTH:
        health(s, r, false);
        break;
    case ROUTE_READY:
        health(s, r, true);
        break;
    case ROUTE_METRICS:
        write_metrics(s, r);
        break;
    case ROUTE_OPENAPI:
        openapi(r);
        break;
    case ROUTE_PAGE:
        page(r);
        break;
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

bool service_hold(service *s, call *c, size_t bytes) {
    const size_t now = atomic_fetch_add(&s->held_bytes, bytes) + bytes;
    if (now > s->rules.max_held) {
        atomic_fetch_sub(&s->held_bytes, bytes);
        return false;
    }
    c->held_bytes += bytes;
    return true;
}

void service_let_go(service *s, call *c) {
    atomic_fetch_sub(&s->held_bytes, c->held_bytes);
    c->held_bytes = 0;
}

/* ---- after the answer ---------------------------------------------------------------------- */

static void add_timing(const call *c, reply *r) {
    const double total = cpu_seconds() - c->started;
    if (c->queue_s >= 0)
        reply_header(r, "Server-Timing",
                     "queue;dur=%.3f, encode;dur=%.3f, model;dur=%.3f, total;dur=%.3f",
                     c->queue_s * 1e3, c->encode_s * 1e3, c->model_s * 1e3, total * 1e3);
    else
        reply_header(r, "Server-Timing", "total;dur=%.3f", total * 1e3);
}

void service_finish_headers(service *s, const call *c, reply *r) {
    if (r->body.failed || r->headers.failed)
        reply_error(r, 503, reply_error_type(503), "The server is short of memory");
    reply_header(r, "x-typesafe-request-id", "%s", c->id);
    reply_header(r, "X-Request-Id", "%s", c->id);
    reply_header(r, "Cache-Control", "no-store");
    add_timing(c, r);
    const str origin = call_header(c, "origin");
    reply_header(r, "Vary", "Origin");
    if (origin.p == NULL || origin.n > 300 || !guard_origin(&s->rules.guard, origin)) return;
    reply_header(r, "Access-Control-Allow-Origin", "%.*s", STR_ARG(origin));
    reply_header(r, "Access-Control-Expose-Headers",
                 "x-typesafe-request-id, x-request-id, retry-after, server-timing, "
                 "x-clef-cached-tokens");
}

void service_log(service *s, const call *c, const reply *r) {
    enum { CLIENT_LEFT = 499 };
    const double seconds = cpu_seconds() - c->started;
    const int status = r->abandon ? CLIENT_LEFT : r->status;
    metrics_count(&s->counts, status, seconds);
    log_request(s->log, c, r, status, r->fixed.p != NULL ? r->fixed.n : r->body.n, seconds);
}
