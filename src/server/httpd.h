/* httpd.h - libmicrohttpd, which this file's .c alone knows: connections of checked requests in,
 * answers of a service out. */
#ifndef SERVER_HTTPD_H
#define SERVER_HTTPD_H

#include "server/service.h"

typedef struct httpd httpd;

typedef struct {
    unsigned max_connections;
    unsigned idle_s; /* a connection without a request is closed after it */
} httpd_options;

/* Starts without a socket to listen on. The service outlives it. */
clef_status httpd_open(httpd **out, service *s, const httpd_options *options, clef_error *err);

/* What is known about a connection on both sides of its socket. */
typedef struct httpd_link httpd_link;

/* Serves the connected socket `fd`, in a thread of its own, and closes it in the end, also on
 * failure (NULL). The requests that come through it are well framed. Give the link up with
 * httpd_leave. */
httpd_link *httpd_serve(httpd *h, int fd);

/* How many requests of it were answered, or given up, so far. */
unsigned httpd_answered(const httpd_link *l);

/* Nobody will read its answers any more: what is computed for it may stop. Accepts NULL. */
void httpd_leave(httpd_link *l);

/* Ends every connection, waits for the threads. Requests being answered have to be over. */
void httpd_close(httpd *h);

#endif
