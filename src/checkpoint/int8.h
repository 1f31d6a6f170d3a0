/* int8.h - weights to codes of one byte with a scale per block. MODEL.md section 7. */
#ifndef CHECKPOINT_INT8_H
#define CHECKPOINT_INT8_H

#include "checkpoint/codes.h"

/* Quantises one row of n values, a multiple of INT8_BLOCK. False when a value is not finite or is
 * too large for F16, in which the scheme works. */
bool int8_quantise_row(int8_t *codes, uint16_t *scales, const float *w, size_t n, code_loss *loss);

#endif
