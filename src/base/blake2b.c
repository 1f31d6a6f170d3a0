/* blake2b.c - RFC 7693, section 3, without a key.
 *
 * minisign needs two lengths: 64 bytes for what is signed, 32 for the checksum inside a secret key.
 * OpenSSL has the second only from 3.2 on and not the first under a FIPS-only provider, and the
 * shorter hash is no prefix of the longer one, because the length goes into the first word of the
 * state. */
#include "base/blake2b.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const uint64_t start[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                  0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                  0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

/* The message words of each round; rounds 10 and 11 repeat rounds 0 and 1. */
static const uint8_t order[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t rotate(uint64_t x, unsigned n) {
    return x >> n | x << (64 - n);
}

static void mix(uint64_t v[16], int a, int b, int c, int d, uint64_t x, uint64_t y) {
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(blake2b *b, const unsigned char *block, size_t n, bool last) {
    b->counted[0] += n;
    if (b->counted[0] < n) b->counted[1]++;
    uint64_t m[16], v[16];
    for (int i = 0; i < 16; i++) {
        m[i] = 0;
        for (int j = 7; j >= 0; j--) m[i] = m[i] << 8 | block[8 * i + j];
    }
    memcpy(v, b->h, sizeof b->h);
    memcpy(v + 8, start, sizeof start);
    v[12] ^= b->counted[0];
    v[13] ^= b->counted[1];
    if (last) v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = order[round % 10];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++) b->h[i] ^= v[i] ^ v[i + 8];
}

void blake2b_begin(blake2b *b, size_t n_sum) {
    assert(n_sum >= 1 && n_sum <= BLAKE2B_MAX);
    *b = (blake2b){.n_sum = n_sum};
    memcpy(b->h, start, sizeof start);
    b->h[0] ^= 0x01010000 ^ n_sum; /* fan-out 1, depth 1, no key */
}

void blake2b_add(blake2b *b, const void *bytes, size_t n) {
    for (const unsigned char *p = bytes; n > 0;) {
        /* A full block waits: the last one is compressed with a mark. */
        if (b->n_block == sizeof b->block) {
            compress(b, b->block, sizeof b->block, false);
            b->n_block = 0;
        }
        const size_t room = sizeof b->block - b->n_block, part = n < room ? n : room;
        memcpy(b->block + b->n_block, p, part);
        b->n_block += part;
        p += part;
        n -= part;
    }
}

void blake2b_finish(blake2b *b, void *sum) {
    memset(b->block + b->n_block, 0, sizeof b->block - b->n_block);
    compress(b, b->block, b->n_block, true);
    unsigned char *out = sum;
    for (size_t i = 0; i < b->n_sum; i++) out[i] = (unsigned char)(b->h[i / 8] >> 8 * (i % 8));
}
