/* part.h - a file on its way: kept as "NAME.part" until it is complete and has the right sum. */
#ifndef FETCH_PART_H
#define FETCH_PART_H

#include "base/buf.h"
#include "base/digest.h"

/* What a file has to be. */
typedef struct {
    uint64_t size;
    bool is_git; /* `hex` is git's name of the file (digest_open_git), not its SHA-256 */
    char hex[DIGEST_HEX];
} part_wanted;

/* {0} is not closed. */
typedef struct {
    int folder, fd;            /* the folder that holds the file, and the part; -1: none */
    buf label;                 /* where the file will be, for sentences */
    buf name, temporary, note; /* in the folder */
    part_wanted wanted;
    uint64_t have; /* bytes of the part, all of them in `sum` */
    digest *sum;
    buf etag, origin; /* of the server that gave the bytes; empty where not known */
} part;

/* Opens the folder that holds `path` below the folder `root` (a descriptor), following no link;
 * `make`: makes what is missing. *name is the rest of the path. -1 with errno. */
int part_folder(const char **name, int root, const char *path, bool make);

/* Writes a whole small file at `path` below `root`, which `root_label` names: the old one or the
 * new one is there at any time. */
clef_status part_text(int root, const char *root_label, const char *path, str text,
                      clef_error *err);

/* Called with the bytes of a file on the disk that were read since the last call. */
typedef clef_status part_read(void *user, size_t n, clef_error *err);

/* Whether the file at `path` below the folder `root` (a descriptor; `root_label` names it) is there
 * with the right size and sum; a note beside it is then of no use and removed. A link counts as
 * absent. `step` may be NULL. */
clef_status part_is_there(bool *there, int root, const char *root_label, const char *path,
                          const part_wanted *wanted, part_read *step, void *user, clef_error *err);

/* The bytes of the disk that the file still takes, given what its part holds. */
uint64_t part_room(int root, const char *path, const part_wanted *wanted);

/* Begins the file at `path` below `root`, or goes on with the part that an earlier run left, whose
 * bytes are read for their sum. Makes the folders between. Nothing follows a link. Fails when
 * another process is at it. Close with part_close, after a failure too. */
clef_status part_open(part *p, int root, const char *root_label, const char *path,
                      const part_wanted *wanted, part_read *step, void *user, clef_error *err);

/* Throws the bytes away. */
clef_status part_restart(part *p, clef_error *err);

/* Remembers, beside the part, which server and which version of the file its bytes are from. */
clef_status part_from(part *p, str etag, str origin, clef_error *err);

/* Appends; CLEF_ERR_LIMIT for more than the wanted size. */
clef_status part_write(part *p, const void *bytes, size_t n, clef_error *err);

/* Gives the complete file its name. CLEF_ERR_FORMAT when the sum is another: the part is then empty
 * again. */
clef_status part_finish(part *p, clef_error *err);

/* Keeps the part on the disk for the next run. */
void part_close(part *p);

#endif
