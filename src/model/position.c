/* position.c - positions and rotary angles.
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
        const float place = (float)(first + row);
        for (uint32_t i = 0; i < n; i++) {
            const size_t at = (size_t)row * n + i;
            fmath_sincos(&sin[at], &cos[at], frequencies[i] * place);
        }
    }
}

void position_planes(position *out, uint32_t n_tokens, const position_picture *pictures,
                     uint32_t n_pictures) {
    uint32_t next = 0; /* the position of the next text row */
    for (uint32_t row = 0; row < n_tokens;) {
        if (n_pictures == 0 || row < pictures->begin) {
            out[row++] = (position){{next, next, next}};
            next++;
            continue;
        }
        const uint32_t rows = pictures->rows, columns = pictures->columns;
        for (uint32_t k = 0; k < rows * columns; k++)
            out[row++] = (position){{next, next + k / columns, next + k % columns}};
        next += rows > columns ? rows : columns;
        pictures++;
        n_pictures--;
    }
}

/* The axis that turns frequency i. */
static uint32_t axis_of(const config *cfg, uint32_t i) {
    const uint32_t axis = i % 3;
    return axis > 0 && i < 3 * cfg->rope_sections[axis] ? axis : 0;
}

void position_plane_angles(float *cos, float *sin, const float *frequencies, const config *cfg,
                           const position *positions, uint32_t n_rows) {
    const uint32_t n = cfg->rotary_dim / 2;
    for (uint32_t row = 0; row < n_rows; row++) {
        for (uint32_t i = 0; i < n; i++) {
            const size_t at = (size_t)row * n + i;
            const float place = (float)positions[row].axis[axis_of(cfg, i)];
            fmath_sincos(&sin[at], &cos[at], frequencies[i] * place);
        }
    }
}
