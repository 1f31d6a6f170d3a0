/* noise.h - the made-up pixels of testdata/media: the formula of tools/oracle/record_media.py. */
#ifndef TESTS_NOISE_H
#define TESTS_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* n samples below `top` (at most 256), times `factor`. */
static inline void noise_fill(uint8_t *out, size_t n, uint32_t seed, uint32_t top,
                              uint32_t factor) {
    uint32_t x = seed;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (uint8_t)((x >> 16) % top * factor);
    }
}

#endif
