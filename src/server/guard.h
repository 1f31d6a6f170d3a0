/* guard.h - who may talk to the server from where: the Host and Origin headers.
 *
 * A page on the internet can make a browser send requests to a server on the same machine, and a
 * name that resolves to 127.0.0.1 makes them look as if they came from the same site. So a server
 * bound to loopback answers to loopback names only, and reads of its answers by pages from
 * elsewhere are refused. */
#ifndef SERVER_GUARD_H
#define SERVER_GUARD_H

#include "base/str.h"

typedef struct {
    bool loopback;            /* bound to a loopback address: Host has to be one too */
    const char *const *hosts; /* also allowed; "*" allows any */
    size_t n_hosts;
    const char *const *origins; /* also allowed, such as "https://app.example"; "*" allows any */
    size_t n_origins;
} guard;

/* Whether a Host header ("name", "name:port", "[v6]:port") names this server. */
bool guard_host(const guard *g, str host);

/* Whether pages of this Origin may ask. */
bool guard_origin(const guard *g, str origin);

/* Whether the text names a loopback host: localhost, 127.0.0.0/8, [::1] or ::1. */
bool guard_is_loopback(str name);

#endif
