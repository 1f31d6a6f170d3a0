/* progress.h - the library's progress callback: a bar while something takes long, and the place
 * where a signal stops the work. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool show;  /* draw on standard error */
    bool drawn; /* a bar stands there */
    const char *unit;
    double size;  /* of a unit, in what the library counts */
    double begin; /* cpu_seconds at the start */
    size_t first; /* done already at the first call */
    bool counting;
} progress;

/* `wanted`: whether to draw; nothing is drawn unless standard error is a terminal. A "unit" is
 * `size` of what the library counts. */
progress progress_begin(bool wanted, const char *unit, double size);

/* A clef_progress; `user` is the progress. */
int progress_step(void *user, size_t done, size_t total);

/* Wipes the bar. */
void progress_finish(progress *p);

#endif
