/* tensor.h - numbers as a file stores them: type, shape, pointer. */
#ifndef BASE_TENSOR_H
#define BASE_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The types of the safetensors format. */
typedef enum {
    DTYPE_BOOL,
    DTYPE_U8,
    DTYPE_I8,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_F8_E8M0,
    DTYPE_F8_E4M3FNUZ,
    DTYPE_F8_E5M2FNUZ,
    DTYPE_I16,
    DTYPE_U16,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_I32,
    DTYPE_U32,
    DTYPE_F32,
    DTYPE_I64,
    DTYPE_U64,
    DTYPE_F64,
    DTYPE_C64,
    DTYPE_F4,
    DTYPE_F6_E2M3,
    DTYPE_F6_E3M2,
    DTYPE_COUNT,
    /* Packed codes of a weight (compute.h), which a file holds as U8. */
    DTYPE_INT6 = DTYPE_COUNT,
    DTYPE_INT4
} dtype;

enum { TENSOR_MAX_RANK = 8 };

/* Row-major values in borrowed memory, little-endian and not necessarily aligned. */
typedef struct {
    dtype type;
    uint32_t rank;
    uint64_t shape[TENSOR_MAX_RANK];
    const void *data;
    size_t bytes;
} tensor;

/* "BF16", as the safetensors format spells it; "INT6" and "INT4" are not its words. */
const char *dtype_name(dtype type);
/* Bits of one value. */
unsigned dtype_bits(dtype type);

static inline float bf16_to_float(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Round to nearest, ties to even; NaN stays NaN. */
uint16_t bf16_from_float(float value);
float f16_to_float(uint16_t bits);
/* Round to nearest, ties to even; from 65520 on infinity. */
uint16_t f16_from_float(float value);

/* Widens `n` values of type BF16, F16 or F32 at `data`, starting at element `first`, to `out`. The
 * caller has checked the type. */
void tensor_to_float(float *out, dtype type, const void *data, size_t first, size_t n);

#endif
