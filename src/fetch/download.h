/* download.h - a text or a file from the first of several sources that gives it, tried again as
 * long as that makes sense. */
#ifndef FETCH_DOWNLOAD_H
#define FETCH_DOWNLOAD_H

#include "fetch/http.h"
#include "fetch/part.h"

/* Told to the one who waits; `text` is a sentence about a failed try that is not the last, or NULL:
 * `have` bytes of the file are there. */
typedef void download_told(void *user, uint64_t have, const char *text);

typedef struct {
    http *http;
    unsigned retry_ms;        /* the first wait, doubled with each; 0: 1,000 */
    bool (*stop)(void *user); /* asked while waiting */
    download_told *told;      /* NULL: nobody waits */
    void *user;
} download;

/* Appends what `url` answers, at most `max_bytes`, to *out. *next gets the URL of the next page, or
 * stays empty; NULL: there are no pages. */
clef_status download_text(const download *d, const char *url, size_t max_bytes, buf *out, buf *next,
                          clef_error *err);

/* Completes `p` from the files at `path` below the sources, URLs that end in '/', in order.
 * CLEF_ERR_FORMAT when a source gave other bytes and none
 * after it the right ones. */
clef_status download_file(const download *d, const char *const *sources, size_t n_sources,
                          const char *path, part *p, clef_error *err);

#endif
