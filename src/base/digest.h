/* digest.h - SHA-256 of bytes and files, and git's name for a file. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/status.h"

enum { DIGEST_HEX = 65 }; /* 64 lowercase hex digits and a zero byte */

typedef struct digest digest;

/* Starts a sum; close with digest_close, which accepts NULL. */
clef_status digest_open(digest **out, clef_error *err);

/* Starts the name that git gives a file of `size` bytes, whose bytes are then added: 40 hex digits,
 * the SHA-1 of "blob SIZE", a zero byte and the content. */
clef_status digest_open_git(digest **out, uint64_t size, clef_error *err);
void digest_close(digest *d);

/* A failure inside is kept for digest_finish. */
void digest_add(digest *d, const void *bytes, size_t n);

/* The sum of everything added; nothing may be added afterwards. */
clef_status digest_finish(digest *d, char hex[DIGEST_HEX], clef_error *err);

clef_status digest_bytes(char hex[DIGEST_HEX], const void *bytes, size_t n, clef_error *err);

/* Called with the bytes read since the last call; a status other than CLEF_OK ends the reading. */
typedef clef_status digest_step(void *user, size_t n, clef_error *err);

/* The sum and the size of the regular file at `path`; `step` may be NULL. */
clef_status digest_file(char hex[DIGEST_HEX], uint64_t *size, const char *path, digest_step *step,
                        void *user, clef_error *err);

#endif
