/* memory.h - how much memory this process holds and how much more it may take, as Linux tells. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdint.h>

/* Memory that no file stands behind, held now; 0 where the system does not tell. */
uint64_t memory_anonymous(void);

/* Gives freed memory back to the system, where the C library keeps some. After something large was
 * built and thrown away. */
void memory_give_back(void);

/* From now on threads share two heaps; call it before the first thread. For a program whose threads
 * come and go: glibc would spread them over eight heaps for each core, and each keeps the freed
 * memory of its own busiest moment, so that the sum rises for as long as such moments come. */
void memory_share_heaps(void);

typedef struct {
    uint64_t bytes;   /* UINT64_MAX: no limit is known */
    const char *name; /* what sets it: "free memory", "the control group's limit", ... */
} memory_room;

/* The least of: memory the system calls available and free swap, what the control groups of this
 * process (v1 or v2, up to the root) leave, and what RLIMIT_AS leaves. Mapped files that could be
 * dropped count as room. */
memory_room memory_available(void);

#endif
