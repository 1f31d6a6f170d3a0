/* decide.h - the routes that ask the model. Each fills *r and blocks meanwhile. */
#ifndef SERVER_DECIDE_H
#define SERVER_DECIDE_H

#include "server/service.h"

/* One request of the API. */
void decide(service *s, call *c, reply *r);

/* The same on the paths that other protocols use too: their bodies are named and refused. */
void decide_by_dialect(service *s, call *c, reply *r);

/* One request, its answer or error in the Workers AI envelope. */
void decide_enveloped(service *s, call *c, reply *r);

/* Puts an answer or an error into that envelope. */
void decide_wrap(reply *r);

/* Many requests, all or none: decide_batch.c. */
void decide_batch(service *s, call *c, reply *r);

/* ---- shared with decide_batch.c ---- */

/* The tree of the body, in `mem`; NULL when *r is the answer already. */
const json *decide_parse(service *s, call *c, arena *mem, reply *r);

/* Whether the model is there and wanted; else *r says why not. */
bool decide_ready(service *s, reply *r);

/* Whether the request names this model; else *r is the error. `fallback` is the name when none
 * stands in the request; its p may be NULL. */
bool decide_model(const service *s, const checked *q, str fallback, reply *r);

/* The options of a request; it stops when the client leaves or the server has to end. */
typedef struct {
    service *s;
    call *c;
    kept_answer *kept; /* NULL: nobody else can be waiting for this */
    char key[24];      /* what states are stored under */
    clef_ask_options ask;
} decision;
void decide_begin(decision *d, service *s, call *c, const checked *q);

/* What the library refused, as an answer. `where` is what stands behind "body" in a problem's
 * place.
 */
void decide_failed(const service *s, reply *r, const clef_error *err, const check_place *where);

#endif
