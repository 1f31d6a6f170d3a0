/* arena.c - blocks of rising size, bump-allocated. Nothing is freed singly. A large piece gets a
 * block of its own from calloc, whose pages the system hands out zeroed and only when touched.
 * What of such a block makes whole pages of 2 MiB is asked for as such: the network's rows then
 * take a few entries of the processor's address cache instead of thousands. */
#define _GNU_SOURCE /* madvise */
#include "base/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    ALIGN = 64,
    FIRST_BLOCK = 16 * 1024,
    LARGEST_BLOCK = 4 * 1024 * 1024,
    OWN_BLOCK = 64 * 1024,
    LARGE_PAGE = 2 * 1024 * 1024
};

struct arena_block {
    struct arena_block *older;
    size_t used, size; /* of the bytes behind this header */
};

/* The header is padded so that the bytes behind it keep malloc's alignment at worst. */
static char *block_bytes(struct arena_block *b) {
    return (char *)(b + 1);
}

/* The bytes to skip from `p` to the next multiple of `align`. */
static size_t padding(const char *p, size_t align) {
    return (size_t)(-(uintptr_t)p & (align - 1));
}

/* Only whole ones: a larger page at either end would hold memory that nobody asked for. A system
 * without such pages refuses, and nothing is lost. */
static void advise_large_pages(char *p, size_t n) {
    const size_t skip = padding(p, LARGE_PAGE);
    if (n < skip + LARGE_PAGE) return;
#if defined(MADV_HUGEPAGE)
    madvise(p + skip, (n - skip) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
}

/* A new block with `size` bytes behind its header; not yet in the list. */
static struct arena_block *new_block(arena *a, size_t size, bool zeroed) {
    size_t total;
    if (!size_add(&total, size, sizeof(struct arena_block))) return NULL;
    if (a->max_bytes != 0 && (total > a->max_bytes || a->total_bytes > a->max_bytes - total)) {
        a->reached = true;
        return NULL;
    }
    struct arena_block *fresh = zeroed ? calloc(1, total) : malloc(total);
    if (fresh == NULL) return NULL;
    if (zeroed) advise_large_pages((char *)fresh, total);
    *fresh = (struct arena_block){.size = size};
    a->total_bytes += total;
    return fresh;
}

static void *take(arena *a, size_t bytes, size_t align) {
    struct arena_block *b = a->block;
    if (b != NULL) {
        const size_t pad = padding(block_bytes(b) + b->used, align);
        if (b->size - b->used >= pad && b->size - b->used - pad >= bytes) {
            b->used += pad + bytes;
            return block_bytes(b) + b->used - bytes;
        }
    }
    size_t size = b == NULL ? FIRST_BLOCK : b->size * 2;
    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    if (size < bytes + ALIGN) size = bytes + ALIGN; /* bytes < OWN_BLOCK or checked by the caller */
    struct arena_block *fresh = new_block(a, size, false);
    if (fresh == NULL) return NULL;
    fresh->older = b;
    a->block = fresh;
    const size_t pad = padding(block_bytes(fresh), align);
    fresh->used = pad + bytes;
    return block_bytes(fresh) + pad;
}

/* A block of its own, behind the newest one so that the newest keeps filling up. */
static void *take_own(arena *a, size_t bytes) {
    size_t size;
    if (!size_add(&size, bytes, ALIGN)) return NULL;
    if (a->count_only) {
        if (!size_add(&a->total_bytes, a->total_bytes, size + sizeof(struct arena_block)))
            return NULL;
        return a;
    }
    struct arena_block *fresh = new_block(a, size, true);
    if (fresh == NULL) return NULL;
    fresh->used = size;
    if (a->block == NULL) {
        a->block = fresh;
    } else {
        fresh->older = a->block->older;
        a->block->older = fresh;
    }
    return block_bytes(fresh) + padding(block_bytes(fresh), ALIGN);
}

void *arena_alloc(arena *a, size_t n, size_t size) {
    size_t bytes;
    if (!size_mul(&bytes, n, size)) return NULL;
    if (bytes >= OWN_BLOCK) return take_own(a, bytes);
    void *p = take(a, bytes, ALIGN);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

void *arena_alloc_small(arena *a, size_t bytes) {
    return bytes >= OWN_BLOCK ? take_own(a, bytes) : take(a, bytes, 8);
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
    a->reached = false;
}
