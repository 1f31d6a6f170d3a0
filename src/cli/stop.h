/* stop.h - interrupt and terminate, noticed between two steps. */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include "base/status.h"

/* From now on the first SIGINT or SIGTERM only asks to stop, and a second one ends the program at
 * once, unless the program was started with it ignored. Writing to a closed pipe, or beyond the
 * limit of file sizes, becomes an ordinary error; a mapped file that is cut short ends the program
 * with one line and status 2. */
void stop_watch(void);

/* The signal that asked to stop, or 0. */
int stop_signal(void);

/* CLEF_ERR_CANCELLED when a signal asked to stop. */
clef_status stop_status(clef_error *err);

#endif
