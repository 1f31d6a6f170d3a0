/* int8.h - weights to codes of one byte with a scale per block. MODEL.md section 7. */
#ifndef CHECKPOINT_INT8_H
#define CHECKPOINT_INT8_H

#include "compute/compute.h"

/* What a row lost: sums in double, in rising order. */
typedef struct {
    double error2, size2; /* sums of (w - code * scale)^2 and of w^2 */
    double largest;       /* |w - code * scale| */
    uint64_t n_clipped;   /* codes that would have been beyond 127 */
} int8_loss;

/* Quantises one row of n values, a multiple of INT8_BLOCK. False when a value is not finite or is
 * too large for F16, in which the scheme works. */
bool int8_quantise_row(int8_t *codes, uint16_t *scales, const float *w, size_t n, int8_loss *loss);

#endif
