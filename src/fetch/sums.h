/* sums.h - the sums of many files on all threads. */
#ifndef FETCH_SUMS_H
#define FETCH_SUMS_H

#include "base/digest.h"
#include "base/status.h"

typedef struct {
    char *path;              /* of the file */
    uint64_t size;           /* in: what it is believed to be; out: the bytes read */
    char sha256[DIGEST_HEX]; /* out, unless failed */
    clef_error failure;      /* CLEF_OK when the sum is right; a file that could not be read is no
                                failure of the call */
} sums_file;

/* Sums all of files[n], the largest begun first, on `jobs` threads (0: as many as this process may
 * run on). `progress` counts bytes and is called on any of the threads, one at a time; when it asks
 * to stop, the call is CLEF_ERR_CANCELLED. */
clef_status sums_run(sums_file *files, size_t n, unsigned jobs, clef_progress *progress, void *user,
                     clef_error *err);

#endif
