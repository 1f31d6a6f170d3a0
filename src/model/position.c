/* position.c - rotary angles.
 *
 * The trap: the reference forms theta^(2i/d), its reciprocal, and the product with the position
 * each in f32. At position 16,384 an exact product differs by up to 3e-4 rad, so every step is
 * rounded here as it is there (testdata/golden/rope.json holds the reference's frequencies). */
#include "model/position.h"

#include <math.h>

#include "compute/fmath.h"

void position_frequencies(float *out, const config *cfg) {
    for (uint32_t i = 0; i < cfg->rotary_dim / 2; i++) {
        const float exponent = (float)(2 * i) / (float)cfg->rotary_dim;
        const float power = (float)pow(cfg->rope_theta, (double)exponent);
        out[i] = 1.0f / power;
    }
}

void position_angles(float *cos, float *sin, const float *frequencies, uint32_t n, uint32_t first,
                     uint32_t n_rows) {
    for (uint32_t row = 0; row < n_rows; row++) {
        const float position = (float)(first + row);
        for (uint32_t i = 0; i < n; i++) {
            const size_t at = (size_t)row * n + i;
            fmath_sincos(&sin[at], &cos[at], frequencies[i] * position);
        }
    }
}
