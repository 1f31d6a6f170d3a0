/* progress.h - the library's progress callback: a bar while something takes long, and the place
 * where a signal stops the work. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool show;    /* draw on standard error */
    bool drawn;   /* a bar stands there */
    double begin; /* cpu_seconds at the start */
    size_t first; /* tokens already done at the first call */
    bool counting;
} progress;

/* `wanted`: --progress was given; nothing is drawn unless standard error is a terminal. */
progress progress_begin(bool wanted);

/* A clef_progress; `user` is the progress. */
int progress_step(void *user, size_t done, size_t total);

/* Wipes the bar. */
void progress_finish(progress *p);

#endif
