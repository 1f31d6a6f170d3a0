/* want.h - which files are to be fetched, what each has to be, and where from. */
#ifndef FETCH_WANT_H
#define FETCH_WANT_H

#include "base/arena.h"
#include "fetch/download.h"
#include "fetch/get.h"

typedef struct {
    const char *path; /* safe to join to a folder */
    const char *blob; /* what the hub cache calls its content */
    size_t original;  /* the first file of that content; its own number when it is that */
    part_wanted wanted;
} want_file;

/* {0} is safe to free. All it points to is its own. */
typedef struct {
    const char *repo, *commit;
    const want_file *files; /* [n_files] */
    size_t n_files;
    const char *const *sources; /* [n_sources] URLs that end in '/', in the order to try them */
    size_t n_sources;
    arena mem;
} want;

/* Reads the manifest or asks the hub, as the options say, and selects. On failure *out is
 * untouched. Free with want_free. */
clef_status want_find(want *out, const get_options *o, const download *d, clef_error *err);
void want_free(want *w);

#endif
