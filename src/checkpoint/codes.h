/* codes.h - weights as codes with a scale per block of 32, in the three widths that a converted
 * folder may hold. compute.h lays out the bytes; MODEL.md section 7 has the schemes.
 *
 * In a file int8 is I8 [n_out, n_in]; int6 and int4 are U8 [n_out, n_in / 32 * 24 or 16], which the
 * width of their rows tells apart. */
#ifndef CHECKPOINT_CODES_H
#define CHECKPOINT_CODES_H

#include "compute/compute.h"

/* What a row lost: sums in double, in rising order. */
typedef struct {
    double error2, size2; /* sums of (w - code * scale)^2 and of w^2 */
    double largest;       /* |w - code * scale| */
    uint64_t n_clipped;   /* codes that would have been beyond the largest */
} code_loss;

void code_loss_add(code_loss *sum, const code_loss *more);

/* Whether a weight of this type is codes: DTYPE_I8, DTYPE_INT6 or DTYPE_INT4. */
bool codes_type(dtype type);
/* "int8", "int6", "int4"; "16bit" of any other type. */
const char *codes_name(dtype type);
/* Bytes of n values, a multiple of INT8_BLOCK, without their scales. */
size_t codes_bytes(dtype type, size_t n);
/* What a tensor holds whose rows are n_in values: codes as they are recognised above, else the
 * tensor's own type. */
dtype codes_of(const tensor *t, uint64_t n_in);

/* Quantises one row of n values, a multiple of INT8_BLOCK. False when a value is not finite or is
 * too large for F16. */
bool codes_quantise_row(dtype type, void *codes, uint16_t *scales, const float *w, size_t n,
                        code_loss *loss);

/* The first of n codes that no converter writes (-128, -32, -8), n when there is none. */
size_t codes_find_bad(dtype type, const void *codes, size_t n);
/* Whether all codes of block `i` are zero. */
bool codes_zero(dtype type, const void *codes, size_t i);
/* The codes of a block. */
void codes_unpack(int8_t out[INT8_BLOCK], dtype type, const void *codes, size_t i);

#endif
