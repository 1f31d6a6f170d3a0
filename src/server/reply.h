/* reply.h - one HTTP answer on its way out: status, headers, body; and the error bodies of the API,
 * which are one object {"detail": ...} in one of two shapes. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "base/buf.h"

/* {0} is an empty reply; free with reply_free. */
typedef struct {
    int status;
    const char *type; /* media type; NULL: application/json */
    buf body;
    str fixed;    /* p not NULL: the body instead, which outlives the reply */
    buf headers;  /* "Name: value\r\n", beyond those that every reply has */
    bool abandon; /* the client has left: nothing is sent */
} reply;

void reply_free(reply *r);

/* Drops whatever the reply holds and starts a new one. */
void reply_reset(reply *r, int status);

/* Appends a header. The value must hold no line feed. */
void reply_header(reply *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* {"detail": {"error_type": ..., "message": ...}}; the message becomes valid UTF-8. Adds
 * Retry-After to 429 and 503 and WWW-Authenticate to 401. */
void reply_error(reply *r, int status, const char *error_type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* {"detail": [problem, ...]} with status 422. */
void reply_invalid(reply *r, const buf *problems);

/* What reply_error calls a status when there is only one name for it. */
const char *reply_error_type(int status);

/* The reason phrase of a status that this server sends. */
const char *reply_reason(int status);

#endif
