/* tensor.c - names and widths of the stored types, and widening to f32. File data need not be
 * aligned, so values are read with memcpy. */
#include "base/tensor.h"

#include <assert.h>
#include <math.h>

static const struct {
    const char *name;
    unsigned bits;
} types[] = {
    [DTYPE_BOOL] = {"BOOL", 8},
    [DTYPE_U8] = {"U8", 8},
    [DTYPE_I8] = {"I8", 8},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 8},
    [DTYPE_F8_E5M2] = {"F8_E5M2", 8},
    [DTYPE_F8_E8M0] = {"F8_E8M0", 8},
    [DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [DTYPE_I16] = {"I16", 16},
    [DTYPE_U16] = {"U16", 16},
    [DTYPE_F16] = {"F16", 16},
    [DTYPE_BF16] = {"BF16", 16},
    [DTYPE_I32] = {"I32", 32},
    [DTYPE_U32] = {"U32", 32},
    [DTYPE_F32] = {"F32", 32},
    [DTYPE_I64] = {"I64", 64},
    [DTYPE_U64] = {"U64", 64},
    [DTYPE_F64] = {"F64", 64},
    [DTYPE_C64] = {"C64", 64},
    [DTYPE_F4] = {"F4", 4},
    [DTYPE_F6_E2M3] = {"F6_E2M3", 6},
    [DTYPE_F6_E3M2] = {"F6_E3M2", 6},
    [DTYPE_INT6] = {"INT6", 6},
    [DTYPE_INT4] = {"INT4", 4},
};

const char *dtype_name(dtype type) {
    return types[type].name;
}

unsigned dtype_bits(dtype type) {
    return types[type].bits;
}

uint16_t bf16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

float f16_to_float(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3FFu;
    float value;
    if (exponent == 0) { /* zero and the subnormals: fraction * 2^-24, exact in f32 */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    const uint32_t wide = exponent == 31 ? sign | 0x7F800000u | fraction << 13
                                         : sign | (exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t f16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    bits &= 0x7FFFFFFFu;
    if (bits > 0x7F800000u) return sign | 0x7E00u;
    if (bits >= 0x477FF000u) return sign | 0x7C00u;
    if (bits < 0x38800000u) { /* below 2^-14: multiples of 2^-24; 1024 of them are 2^-14 itself */
        float size;
        memcpy(&size, &bits, sizeof size);
        return sign | (uint16_t)rintf(size * 0x1p24f);
    }
    bits += 0xFFFu + (bits >> 13 & 1);
    return sign | (uint16_t)((bits >> 13) - (112u << 10));
}

void tensor_to_float(float *out, dtype type, const void *data, size_t first, size_t n) {
    const unsigned char *p = data;
    assert(type == DTYPE_BF16 || type == DTYPE_F16 || type == DTYPE_F32);
    if (type == DTYPE_F32) {
        memcpy(out, p + first * sizeof(float), n * sizeof(float));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, p + (first + i) * sizeof bits, sizeof bits);
        out[i] = type == DTYPE_BF16 ? bf16_to_float(bits) : f16_to_float(bits);
    }
}
