/* guard.c - see guard.h. */
#include "server/guard.h"

#include <strings.h>

/* "127.1.2.3": four decimal numbers of at most 255, the first 127. */
static bool is_127(str name) {
    unsigned parts = 0;
    for (size_t at = 0; at <= name.n; at++) {
        unsigned value = 0, digits = 0;
        for (; at < name.n && name.p[at] >= '0' && name.p[at] <= '9' && digits < 4; at++, digits++)
            value = value * 10 + (unsigned)(name.p[at] - '0');
        if (digits == 0 || digits > 3 || value > 255) return false;
        if (parts == 0 && value != 127) return false;
        parts++;
        if (at < name.n && name.p[at] != '.') return false;
    }
    return parts == 4;
}

bool guard_is_loopback(str name) {
    return str_same_word(name, "localhost") || str_same_word(name, "[::1]") ||
           str_same_word(name, "::1") || is_127(name);
}

/* Takes ":port" off the end; false when what stands there is no port. */
static bool without_port(str *host) {
    size_t end = host->n;
    while (end > 0 && host->p[end - 1] >= '0' && host->p[end - 1] <= '9') end--;
    if (end > 0 && host->p[end - 1] == ':' && host->n - end >= 1 && host->n - end <= 5 &&
        (memchr(host->p, ':', end - 1) == NULL || host->p[end - 2] == ']')) {
        host->n = end - 1;
        return true;
    }
    return host->n > 0 && (memchr(host->p, ':', host->n) == NULL || host->p[host->n - 1] == ']');
}

bool guard_host(const guard *g, str host) {
    str name = host;
    if (!without_port(&name) || name.n == 0) return false;
    if (!g->loopback && g->n_hosts == 0) return true;
    if (g->loopback && guard_is_loopback(name)) return true;
    for (size_t i = 0; i < g->n_hosts; i++)
        if (str_same_word(name, g->hosts[i]) || str_same_word(host, g->hosts[i]) ||
            strcmp(g->hosts[i], "*") == 0)
            return true;
    return false;
}

bool guard_origin(const guard *g, str origin) {
    for (size_t i = 0; i < g->n_origins; i++)
        if (str_same_word(origin, g->origins[i]) || strcmp(g->origins[i], "*") == 0) return true;
    static const char *const SCHEMES[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(SCHEMES[i]);
        if (origin.n <= n || strncasecmp(origin.p, SCHEMES[i], n) != 0) continue;
        str name = {origin.p + n, origin.n - n};
        return without_port(&name) && guard_is_loopback(name);
    }
    return false;
}
