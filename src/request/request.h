/* request.h - a SystemOne request, checked: JSON body to state and questions with their options in
 * scoring order. MODEL.md section 1. */
#ifndef REQUEST_REQUEST_H
#define REQUEST_REQUEST_H

#include "base/arena.h"
#include "request/pictures.h"
#include "text/json.h"

/* Arrays and objects of a body nest at most this deep. */
enum { REQUEST_MAX_DEPTH = 512 };

typedef enum { QUESTION_NOUL = 0, QUESTION_CHOICE = 1, QUESTION_SCORE = 2 } question_kind;

typedef struct {
    str id;                  /* "true", "false"; the choice's name; "0", "1", ... */
    const json *description; /* never NULL; a JSON null is left out of the prompt */
} option;

typedef struct {
    question_kind kind;
    str id;
    const json *instructions; /* NULL: the id is the text */
    const option *options;    /* [n_options] in scoring order */
    const uint32_t *asked; /* [n_options] options in the request's order, as indices into options */
    uint32_t n_options;
} question;

typedef struct {
    str model;
    const json *state;
    const question *questions; /* [n_questions] in the request's order */
    uint32_t n_questions;
    uint32_t n_options; /* over all questions */
    pictures media;
} request;

/* "noul", "choice", "score". */
const char *question_kind_name(question_kind kind);

/* A name from a request as an error sentence shows it: zero bytes as \x00, a long one shortened and
 * ending in "...". Used in place: request_show(id).text. */
typedef struct {
    char text[128];
} shown_name;
shown_name request_show(str name);

/* Parses and checks a request body. Everything *out points to lives in `mem`, which may be freed
 * with it; `body` need not outlive the call. Error sentences start with the JSON path
 * ("questions.urgency.criteria: ..."), in the reference's order: request.c. */
clef_status request_parse(request *out, str body, arena *mem, clef_error *err);

#endif
