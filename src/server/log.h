/* log.h - the access log: a line for each request, as text or as JSON. States, questions and
 * answers never reach it unless the bodies are asked for. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include "server/call.h"

typedef struct access_log access_log;

typedef struct {
    const char *path; /* NULL: standard error; "none": no log */
    bool json, bodies;
} log_options;

/* Close with log_close, which accepts NULL. */
clef_status log_open(access_log **out, const log_options *options, clef_error *err);
void log_close(access_log *l);

/* Opens the file again, after it was renamed; the old one stays in use when that fails. */
clef_status log_reopen(access_log *l, clef_error *err);

/* A finished request. `bytes` is the length of the answer's body. */
void log_request(access_log *l, const call *c, const reply *r, int status, size_t bytes,
                 double seconds);

/* A line about the server itself. */
void log_note(access_log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
