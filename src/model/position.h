/* position.h - rotary angles. MODEL.md section 2, "Full attention". */
#ifndef MODEL_POSITION_H
#define MODEL_POSITION_H

#include "checkpoint/config.h"

/* out [rotary_dim / 2]: theta^(-2i / rotary_dim), rounded as the reference rounds it. */
void position_frequencies(float *out, const config *cfg);

/* Cosines and sines [n_rows, n] of consecutive text positions first, first + 1, ...; `frequencies`
 * has n entries. In text the three M-RoPE planes are equal, so the sections do not show. */
void position_angles(float *cos, float *sin, const float *frequencies, uint32_t n, uint32_t first,
                     uint32_t n_rows);

#endif
