/* arena.c - blocks of rising size, bump-allocated. Nothing is freed singly. */
#include "base/arena.h"

#include <stdlib.h>

enum { ALIGN = 64, FIRST_BLOCK = 16 * 1024, LARGEST_BLOCK = 4 * 1024 * 1024 };

struct arena_block {
    struct arena_block *older;
    size_t used, size; /* of the bytes behind this header */
};

/* The header is padded so that the bytes behind it keep malloc's alignment at worst. */
static char *block_bytes(struct arena_block *b) {
    return (char *)(b + 1);
}

static void *take(arena *a, size_t bytes, size_t align) {
    struct arena_block *b = a->block;
    if (b != NULL) {
        const uintptr_t at = (uintptr_t)(block_bytes(b) + b->used);
        const size_t pad = (size_t)(-at & (align - 1));
        if (b->size - b->used >= pad && b->size - b->used - pad >= bytes) {
            b->used += pad + bytes;
            return block_bytes(b) + b->used - bytes;
        }
    }
    size_t size = b == NULL ? FIRST_BLOCK : b->size * 2;
    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    size_t least, total;
    if (!size_add(&least, bytes, ALIGN)) return NULL;
    if (size < least) size = least;
    if (!size_add(&total, size, sizeof *b)) return NULL;
    if (a->max_bytes != 0 && (total > a->max_bytes || a->total_bytes > a->max_bytes - total))
        return NULL;
    struct arena_block *fresh = malloc(total);
    if (fresh == NULL) return NULL;
    *fresh = (struct arena_block){.older = b, .size = size};
    a->block = fresh;
    a->total_bytes += total;
    return take(a, bytes, align);
}

void *arena_alloc(arena *a, size_t n, size_t size) {
    size_t bytes;
    if (!size_mul(&bytes, n, size)) return NULL;
    void *p = take(a, bytes, ALIGN);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

void *arena_alloc_small(arena *a, size_t bytes) {
    return take(a, bytes, 8);
}

str arena_copy(arena *a, str s) {
    size_t bytes;
    if (!size_add(&bytes, s.n, 1)) return (str){0};
    char *p = arena_alloc_small(a, bytes);
    if (p == NULL) return (str){0};
    if (s.n > 0) memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return (str){p, s.n};
}

void arena_free(arena *a) {
    for (struct arena_block *b = a->block; b != NULL;) {
        struct arena_block *older = b->older;
        free(b);
        b = older;
    }
    a->block = NULL;
    a->total_bytes = 0;
}
