/* call.c - see call.h. A fresh id is "req_" and 32 hexadecimal digits from the system's random
 * numbers; ids are labels, not secrets, so a counter and the clock do when there are none. */
#include "server/call.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

str call_header(const call *c, const char *name) {
    for (size_t i = 0; i < c->n_headers; i++)
        if (str_same_word(c->headers[i].name, name)) return c->headers[i].value;
    return (str){NULL, 0};
}

size_t call_count_header(const call *c, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_headers; i++) n += str_same_word(c->headers[i].name, name);
    return n;
}

/* Printable ASCII, not too long: safe in a header and in a log. */
static bool is_sane(str id) {
    if (id.n == 0 || id.n >= CALL_ID_BYTES) return false;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= 0x20 || id.p[i] >= 0x7F) return false;
    return true;
}

void call_set_id(call *c) {
    static const char *const NAMES[] = {"x-typesafe-request-id", "x-request-id"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const str sent = call_header(c, NAMES[i]);
        if (sent.p == NULL || !is_sane(sent)) continue;
        memcpy(c->id, sent.p, sent.n);
        c->id[sent.n] = '\0';
        return;
    }
    static atomic_uint_fast64_t counter;
    uint64_t bits[2] = {0};
    if (getrandom(bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        bits[0] = (uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec;
        bits[1] = atomic_fetch_add(&counter, 1);
    }
    snprintf(c->id, sizeof c->id, "req_%016llx%016llx", (unsigned long long)bits[0],
             (unsigned long long)bits[1]);
}
