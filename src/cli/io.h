/* io.h - the request comes in and the result goes out, whole or not at all. */
#ifndef CLI_IO_H
#define CLI_IO_H

#include "base/buf.h"

enum { REQUEST_MAX_BYTES = 64 << 20 };

/* Opens closed standard descriptors in the wrong direction, so that no file takes their numbers and
 * using them stays an error. */
void io_guard_standard(void);

/* Appends the whole of `path` to `out`; NULL and "-" stand for standard input. A pipe or device
 * will do. CLEF_ERR_LIMIT beyond REQUEST_MAX_BYTES. */
clef_status io_read_request(buf *out, const char *path, clef_error *err);

/* Fails when io_write could not create `path` (NULL: nothing to check), before a long computation.
 */
clef_status io_check_out(const char *path, clef_error *err);

/* Writes `text` to standard output, or, when `path` is not NULL, to that file: through a temporary
 * file beside it and a rename, so that a reader sees the old or the whole new content. What is no
 * regular file (a device, a pipe) is written as it is. */
clef_status io_write(const char *path, str text, clef_error *err);

/* Writes `text` to standard error. */
clef_status io_write_error(str text, clef_error *err);

#endif
