/* check.h - a request body to a request that this server takes: the rules of the API where they are
 * stricter than the library's, and the one spelling that the engine and the answer cache see. */
#ifndef SERVER_CHECK_H
#define SERVER_CHECK_H

#include "base/arena.h"
#include "base/buf.h"
#include "text/json.h"

/* The caps of the server; the library has none but the token limit. */
typedef struct {
    uint32_t max_depth; /* nested arrays and objects */
    uint32_t max_questions, max_options, max_levels, max_images, max_batch;
    size_t max_tree_bytes; /* memory that the parsed body may take */
    bool strict;           /* a request has to name its model */
} check_limits;

/* What a checked request asks for. Everything points into the tree. */
typedef struct {
    str model; /* trimmed; p is NULL when none is named */
    const json *state, *questions, *images, *videos, *media_kwargs; /* the last three may be NULL */
    enum { CHECK_AS_SERVED, CHECK_TRUNCATE, CHECK_NO_TRUNCATE } truncate;
} checked;

/* Where a fault is: the names and indices behind "body". */
typedef struct check_place check_place;
struct check_place {
    const check_place *outer; /* NULL: the body itself */
    str name;
    size_t index; /* when name.p is NULL */
};

/* Problems found so far, as the members of a JSON array. */
typedef struct {
    buf list;
    size_t n;
} problems;

/* Adds one; after 20 the rest is counted only. `type` is a short word for programs. */
void problem_add(problems *p, const check_place *where, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Parses a body. A fault becomes a problem (then *out is untouched). CLEF_ERR_MEMORY is the only
 * failure that is not the client's. */
clef_status check_parse(const json **out, str body, const check_limits *limits, arena *mem,
                        problems *p, clef_error *err);

/* Checks the members of one request, which stands at `where` (NULL: it is the body). True when
 * nothing was added to `p`. */
bool check_request(checked *out, const json *root, const check_place *where,
                   const check_limits *limits, problems *p);

/* Appends the request as the engine is asked: known members only, in one spelling, the served name
 * as its model. Two requests of the same text get the same answer. */
clef_status check_write(buf *out, const checked *c, const char *served, clef_error *err);

#endif
