/* rest.h - whether a process whose threads all wait takes no processor time. */
#ifndef TESTS_REST_H
#define TESTS_REST_H

#include <stdbool.h>
#include <time.h>

static inline double rest_spent(clockid_t clock) {
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether the process whose processor time `clock` tells comes to rest. A busy machine lets its
 * threads go to sleep late, and a server now and then has work of its own; so one window of many
 * has to be without work. One that spins has none. */
static inline bool rest_comes(clockid_t clock) {
    enum { WINDOWS = 40 };
    for (int i = 0; i < WINDOWS; i++) {
        const double before = rest_spent(clock);
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        if (rest_spent(clock) - before < 0.003) return true;
    }
    return false;
}

#endif
