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

/* Serves the connected socket `fd`, in a thread of its own, and closes it in the end, also on
 * failure (false). The requests that come through it are whole and well framed. */
bool httpd_serve(httpd *h, int fd);

/* Ends every connection, waits for the threads. Requests being answered have to be over. */
void httpd_close(httpd *h);

#endif
