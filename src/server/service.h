/* service.h - the server without its sockets: what every route works with.
 *
 * A request comes in two steps. service_head sees the head and may answer at once (a wrong path, a
 * missing key, a length beyond the limit), so that a body which will be refused is never read.
 * Otherwise service_decode undoes the compression of the whole body, and service_answer blocks
 * until there is an answer. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include "server/answers.h"
#include "server/call.h"
#include "server/check.h"
#include "server/guard.h"
#include "server/keys.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/names.h"

typedef struct {
    check_limits limits;
    size_t max_body;      /* bytes of a body */
    size_t max_held;      /* bytes of all bodies at once, and of what they are parsed into */
    clef_ask_options ask; /* for every request; progress and user are set by the service */
    model_names names;
    guard guard;
} service_rules;

typedef enum { SERVICE_LOADING, SERVICE_READY, SERVICE_STOPPING } service_state;

typedef struct {
    service_rules rules;
    api_keys *keys;
    answers *kept; /* NULL: nothing is kept or merged */
    access_log *log;
    metrics counts;
    clef_engine *engine;      /* set before `state` becomes SERVICE_READY, and not read before */
    double load_s;            /* as `engine` */
    atomic_int state;         /* service_state */
    atomic_llong created;     /* of the checkpoint, in seconds since 1970 */
    atomic_size_t held_bytes; /* for all requests now, as service_hold counts */
    atomic_bool cancel;       /* running requests stop */
} service;

/* True when *r is the answer; false when the body is wanted. */
bool service_head(service *s, call *c, reply *r);

/* Decompresses a whole body in place where its Content-Encoding says so; false when *r is the
 * answer. */
bool service_decode(service *s, call *c, buf *body, reply *r);

/* Answers a request whose body, decoded, is in c->body. */
void service_answer(service *s, call *c, reply *r);

/* Counts bytes that the request will take until service_let_go; false: that is too much. */
bool service_hold(service *s, call *c, size_t bytes);
void service_let_go(service *s, call *c);

/* Adds what every answer has: ids, timing, cross-origin headers. A reply that ran out of memory
 * becomes a 503. */
void service_finish_headers(service *s, const call *c, reply *r);

/* Counts and logs a request that is over; status 499 for a client that left. */
void service_log(service *s, const call *c, const reply *r);

#endif
