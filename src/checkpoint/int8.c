/* int8.c - the symmetric scheme with clipping: per block of 32 values x of a row, rounded to F16,
 *
 *     scale = F16( max( max|x| / 127 , 2^-23 ) )
 *     code  = clamp( round_half_even( x / scale ), -127, 127 )
 *
 * The divisions are f32's, and the second one uses the scale as it is stored. A block of zeros has
 * the scale 2^-23. Codes are clipped only where the scale is subnormal: among its few steps the
 * nearest can be a fifth too small. */
#include "checkpoint/int8.h"

#include <math.h>

static bool quantise_block(int8_t *codes, uint16_t *scale_bits, const float *w, code_loss *loss) {
    float x[INT8_BLOCK], most = 0.0f;
    for (int i = 0; i < INT8_BLOCK; i++) {
        x[i] = f16_to_float(f16_from_float(w[i]));
        if (!isfinite(x[i])) return false;
        if (fabsf(x[i]) > most) most = fabsf(x[i]);
    }
    *scale_bits = f16_from_float(fmaxf(most / 127.0f, 0x1p-23f));
    const float scale = f16_to_float(*scale_bits);
    for (int i = 0; i < INT8_BLOCK; i++) {
        const float code = rintf(x[i] / scale);
        const float kept = fminf(fmaxf(code, -127.0f), 127.0f);
        const double error = (double)w[i] - (double)(kept * scale);
        codes[i] = (int8_t)kept;
        loss->error2 += error * error;
        loss->size2 += (double)w[i] * (double)w[i];
        if (fabs(error) > loss->largest) loss->largest = fabs(error);
        if (code != kept) loss->n_clipped++;
    }
    return true;
}

bool int8_quantise_row(int8_t *codes, uint16_t *scales, const float *w, size_t n, code_loss *loss) {
    *loss = (code_loss){0};
    for (size_t i = 0; i < n; i += INT8_BLOCK)
        if (!quantise_block(codes + i, scales + i / INT8_BLOCK, w + i, loss)) return false;
    return true;
}
