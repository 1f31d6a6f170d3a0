/* reply.c - see reply.h. The table below is the one place where statuses have names. */
#include "server/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/pyjson.h"

static const struct {
    int status;
    const char *reason, *error_type;
} STATUSES[] = {
    {200, "OK", ""},
    {204, "No Content", ""},
    {400, "Bad Request", "api_usage_error"},
    {401, "Unauthorized", "authentication_error"},
    {403, "Forbidden", "permission_error"},
    {404, "Not Found", "not_found"},
    {405, "Method Not Allowed", "method_not_allowed"},
    {408, "Request Timeout", "request_timeout"},
    {413, "Content Too Large", "request_too_large"},
    {414, "URI Too Long", "request_too_large"},
    {415, "Unsupported Media Type", "unsupported_media_type"},
    {417, "Expectation Failed", "api_usage_error"},
    {422, "Unprocessable Content", ""},
    {429, "Too Many Requests", "rate_limit_error"},
    {431, "Request Header Fields Too Large", "request_too_large"},
    {500, "Internal Server Error", "internal_error"},
    {501, "Not Implemented", "api_usage_error"},
    {503, "Service Unavailable", "overloaded_error"},
    {505, "HTTP Version Not Supported", "api_usage_error"},
};
enum { N_STATUSES = sizeof STATUSES / sizeof *STATUSES };

static size_t find_status(int status) {
    for (size_t i = 0; i < N_STATUSES; i++)
        if (STATUSES[i].status == status) return i;
    return N_STATUSES;
}

const char *reply_error_type(int status) {
    const size_t i = find_status(status);
    return i == N_STATUSES ? "internal_error" : STATUSES[i].error_type;
}

const char *reply_reason(int status) {
    const size_t i = find_status(status);
    return i == N_STATUSES ? "Unknown" : STATUSES[i].reason;
}

void reply_free(reply *r) {
    buf_free(&r->body);
    buf_free(&r->headers);
    *r = (reply){0};
}

void reply_reset(reply *r, int status) {
    reply_free(r);
    r->status = status;
}

void reply_header(reply *r, const char *name, const char *format, ...) {
    char value[512];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(value, sizeof value, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= sizeof value) {
        r->headers.failed = true;
        return;
    }
    buf_printf(&r->headers, "%s: %s\r\n", name, value);
}

/* The message as JSON, whatever bytes it holds. */
static void add_message(buf *out, const char *text) {
    size_t n = strlen(text);
    if (utf8_check(text, n) == n) {
        pyjson_string(out, (str){text, n});
        return;
    }
    buf safe = {0};
    buf_add_safe(&safe, (str){text, n});
    pyjson_string(out, (str){safe.p, safe.n});
    if (safe.failed) out->failed = true;
    buf_free(&safe);
}

void reply_error(reply *r, int status, const char *error_type, const char *format, ...) {
    char message[1200];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    reply_reset(r, status);
    buf_add_text(&r->body, "{\"detail\": {\"error_type\": ");
    pyjson_string(&r->body, str_of(error_type));
    buf_add_text(&r->body, ", \"message\": ");
    add_message(&r->body, message);
    buf_add_text(&r->body, "}}");
    if (status == 401) reply_header(r, "WWW-Authenticate", "Bearer");
    if (status == 429 || status == 503) {
        reply_header(r, "Retry-After", "1");
        reply_header(r, "retry-after-ms", "1000");
    }
}

void reply_invalid(reply *r, const buf *problems) {
    reply_reset(r, 422);
    buf_add_text(&r->body, "{\"detail\": [");
    buf_add(&r->body, problems->p, problems->n);
    buf_add_text(&r->body, "]}");
    if (problems->failed) r->body.failed = true;
}
