/* listing.h - everything below a folder. */
#ifndef FETCH_LISTING_H
#define FETCH_LISTING_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef enum {
    LISTING_FILE,
    LISTING_FOLDER,
    LISTING_LINK, /* not followed */
    LISTING_OTHER
} listing_kind;

typedef struct {
    str path; /* relative to the folder, zero-terminated */
    listing_kind kind;
} listing_entry;

/* All that lies below folder `dir`, in the order of their paths' bytes. *entries is given back with
 * free(), the paths are in `mem`. */
clef_status listing_read(listing_entry **entries, size_t *n, const char *dir, arena *mem,
                         clef_error *err);

/* How listings are ordered, for qsort and bsearch: `a` and `b` point to structs that begin with a
 * str. */
int listing_order(const void *a, const void *b);

#endif
