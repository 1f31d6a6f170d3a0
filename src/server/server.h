/* server.h - the running server: its parts opened in order, its life from loading to the last
 * answer. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "server/edge.h"

typedef struct server server;

/* Everything is given; clef serve --help has the defaults. Strings outlive the server. */
typedef struct {
    clef_options engine;
    bool warmup; /* a first request is computed before the server says that it is ready */
    edge_options edge;
    unsigned idle_s;
    const char *api_key, *api_key_file; /* NULL: none */
    log_options log;
    size_t kept_bytes; /* 0: answers are not kept, equal requests not merged */
    double kept_s;
    service_rules rules; /* guard.loopback is set by the server */
} server_options;

/* Whether a server could start with these options, the socket aside: keys, log, model. */
clef_status server_check(const server_options *options, clef_error *err);

/* Listens, answers what needs no model, and begins to load the model in a thread of its own. */
clef_status server_open(server **out, const server_options *options, clef_error *err);

const char *server_address(const server *v);

/* CLEF_OK while the model is being loaded or is there; why it could not be loaded otherwise. */
clef_status server_status(server *v, clef_error *err);
bool server_is_ready(server *v);

/* Opens the log again and reads the key file again, each whatever becomes of the other, and says so
 * in the log. What fails leaves what was there. */
clef_status server_reload(server *v, clef_error *err);

/* Takes no more requests; those that are here are answered. */
void server_stop(server *v);

/* Whether all of them are. */
bool server_is_done(server *v);

/* Ends those that are not: they are answered with 503. */
void server_cancel(server *v);

/* Closes everything. Accepts NULL. */
void server_close(server *v);

#endif
