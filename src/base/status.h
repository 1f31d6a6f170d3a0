/* status.h - how every call reports failure: a status, and one sentence written where the fault
 * was found. Callers pass both up unchanged. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "clef.h"

/* Writes the sentence (printf rules) and the status into `err`, which may be NULL, and returns the
 * status. The text is made safe to print: bytes that are no valid UTF-8 and control characters come
 * out as \xNN, and what does not fit ends in "...". */
clef_status clef_fail(clef_error *err, clef_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The sentence for memory that could not be had. */
clef_status clef_fail_memory(clef_error *err);

#ifdef __clang_analyzer__
/* The analyser does not look into other files: tell it that a failure is never CLEF_OK. */
#define clef_fail(err, status, ...) (clef_fail(err, status, __VA_ARGS__), (status))
#define clef_fail_memory(err) (clef_fail_memory(err), CLEF_ERR_MEMORY)
#endif

/* Returns from the calling function at once when `call` fails; for places with nothing to release.
 */
#define TRY(call)                                       \
    do {                                                \
        const clef_status try_status_ = (call);         \
        if (try_status_ != CLEF_OK) return try_status_; \
    } while (0)

#endif
