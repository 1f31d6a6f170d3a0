/* thread.h - threads of the library's own. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

#include "base/status.h"

/* Starts a thread that takes no signals but those of its own faults: signals belong to the
 * program's threads. `name` tells it apart in the error (CLEF_ERR_MEMORY). Join it with
 * pthread_join. */
clef_status thread_start(pthread_t *out, void *(*start)(void *), void *context, const char *name,
                         clef_error *err);

#endif
