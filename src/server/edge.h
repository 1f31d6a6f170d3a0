/* edge.h - the server's sockets: accepts connections, lets only well-framed requests through, in
 * time, and hands connections to httpd.h. */
#ifndef SERVER_EDGE_H
#define SERVER_EDGE_H

#include "server/httpd.h"

typedef struct edge edge;

typedef struct {
    const char *host;
    uint16_t port; /* 0: any free one */
    unsigned max_connections;
    double head_s;  /* for a whole head; for a body the same and a second for each 16 KiB */
    double write_s; /* without a byte taken by a client that should read */
} edge_options;

/* Binds and listens; nothing is accepted before edge_start. */
clef_status edge_open(edge **out, service *s, const edge_options *options, clef_error *err);

/* Starts the thread that does the work. */
clef_status edge_start(edge *g, httpd *h, clef_error *err);

/* The address it listens on, "127.0.0.1:8423" or "[::1]:8423"; good until edge_close. */
const char *edge_address(const edge *g);
bool edge_is_loopback(const edge *g);

/* Accepts nothing more and closes the connections that wait for a request. */
void edge_stop(edge *g);

/* Whether every connection is closed. */
bool edge_is_empty(edge *g);

/* Closes all that is left. Accepts NULL. Before httpd_close, which waits for its connections. */
void edge_close(edge *g);

#endif
