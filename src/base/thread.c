/* thread.c - see thread.h. POSIX leaves open what happens when a signal that a thread's own fault
 * raises is blocked, so those are not. */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

clef_status thread_start(pthread_t *out, void *(*start)(void *), void *context, const char *name,
                         clef_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int why = pthread_create(out, NULL, start, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_MEMORY, "cannot start the %s thread: %s", name, strerror(why));
}
