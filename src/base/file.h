/* file.h - reading small files and mapping big ones. Regular files only; a size is taken once, on
 * the open descriptor. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

/* Hands the regular file at `path` over in blocks, in order. Refuses one of more than `max_bytes`;
 * a status other than CLEF_OK from `visit` ends the reading and is passed on. */
typedef clef_status file_visit(void *context, const void *bytes, size_t n, clef_error *err);
clef_status file_blocks(const char *path, size_t max_bytes, file_visit *visit, void *context,
                        clef_error *err);

/* Appends the whole file at `path` to `out`. Refuses a file of more than `max_bytes`. */
clef_status file_read(buf *out, const char *path, size_t max_bytes, clef_error *err);

/* A file mapped read-only. {0} is safe to unmap. */
typedef struct {
    const unsigned char *data; /* NULL for an empty file */
    size_t n;                  /* bytes */
} file_map;

/* Maps the regular file at `path`; on failure *out is untouched. Unmap with file_unmap. */
clef_status file_map_open(file_map *out, const char *path, clef_error *err);
void file_unmap(file_map *map);

/* Mapped bytes that will not be read again soon: their memory goes back to the system. */
void file_forget(const void *data, size_t n);

/* Whether `path` names something that exists. */
bool file_exists(const char *path);

/* Whether something stands at `path`, be it a link to nothing or a thing that may not be looked at:
 * a file that is optional is absent only when this is false. */
bool file_is_named(const char *path);

/* "dir/name" in memory for free(); NULL when memory is exhausted. */
char *file_join(const char *dir, const char *name);

#endif
