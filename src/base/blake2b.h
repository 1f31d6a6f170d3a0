/* blake2b.h - the unkeyed BLAKE2b hash (RFC 7693) of any length from 1 to 64 bytes. */
#ifndef BASE_BLAKE2B_H
#define BASE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_MAX = 64 };

typedef struct {
    uint64_t h[8];
    uint64_t counted[2]; /* bytes compressed so far, low and high word */
    unsigned char block[128];
    size_t n_block; /* bytes waiting in `block` */
    size_t n_sum;
} blake2b;

void blake2b_begin(blake2b *b, size_t n_sum);
void blake2b_add(blake2b *b, const void *bytes, size_t n);
/* Writes the n_sum bytes of the hash; nothing may be added afterwards. */
void blake2b_finish(blake2b *b, void *sum);

#endif
