/* call.h - one HTTP request as the routes see it: a checked head and, later, a whole body. */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include "base/str.h"
#include "server/reply.h"

typedef struct {
    str name, value;
} http_header;

enum { CALL_ID_BYTES = 129 };

/* Whether the client has left; may be asked from the thread that answers. */
typedef bool call_gone(void *user);

typedef struct {
    str method, path; /* the path as sent, without the query */
    str host; /* of a target in its absolute form, instead of the Host header; or {NULL, 0} */
    const http_header *headers;
    size_t n_headers;
    str body;
    call_gone *gone; /* NULL: nobody can leave */
    void *gone_user;
    char id[CALL_ID_BYTES]; /* request id, zero-terminated */
    size_t held_bytes;      /* service_hold */
    double started;         /* clock_seconds when the head was complete */

    /* What the routes found out, for the log and the counters. */
    size_t key;           /* which API key: 0 none, else 1 + its index */
    uint32_t n_questions; /* answered */
    uint32_t n_tokens, n_cached;
    bool from_cache;
    double queue_s, encode_s, model_s; /* negative: not known */
} call;

/* The value of the first header of that name (compared without case), or {NULL, 0}. */
str call_header(const call *c, const char *name);

/* How many headers have that name. */
size_t call_count_header(const call *c, const char *name);

/* Sets c->id: a sane id that the client sent, or a fresh one. */
void call_set_id(call *c);

#endif
