/* arena.h - memory that is freed at once: a request's parse tree, a model's small vectors. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/status.h"
#include "base/str.h"

/* {0} is an empty arena without a ceiling; set max_bytes before the first allocation for one. */
typedef struct {
    struct arena_block *block; /* the newest; older ones hang behind it */
    size_t max_bytes;          /* 0: no ceiling */
    size_t total_bytes;        /* taken from the system so far */
    bool count_only; /* large pieces are counted, not taken: their addresses must not be used */
    bool reached;    /* the ceiling refused something, not the system */
} arena;

/* Zeroed room for n items of `size` bytes, aligned to 64 bytes; NULL when memory or the ceiling is
 * exhausted or n * size overflows. n = 0 gives a valid pointer. */
void *arena_alloc(arena *a, size_t n, size_t size);

/* The same aligned to 8 bytes and not zeroed, for many small pieces. */
void *arena_alloc_small(arena *a, size_t bytes);

/* A copy of `s` in the arena with a zero byte behind it; p is NULL when memory is exhausted. */
str arena_copy(arena *a, str s);

void arena_free(arena *a);

#endif
