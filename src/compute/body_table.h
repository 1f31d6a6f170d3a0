/* body_table.h - all kernel bodies and the entries they make. A kernels_NAME.c includes its lanes,
 * then this, and exports {.name = ..., .needs = ..., KERNEL_ENTRIES}. */
#ifndef COMPUTE_BODY_TABLE_H
#define COMPUTE_BODY_TABLE_H

#include "compute/body_math.h"
#include "compute/body_rows.h"
#include "compute/body_tile.h"

#include "compute/body_attend.h"
#include "compute/body_codes.h"
#include "compute/body_delta.h"

#define KERNEL_ENTRIES                                                                      \
    .tile_outs = MOST_OUTS, .tile = tile, .tile_half = tile_half, .store_tile = store_tile, \
    .widen = widen, .widen_across = widen_across, .rms_norm_row = rms_norm_row,             \
    .layer_norm_row = layer_norm_row, .silu_mul_row = silu_mul_row, .gelu_row = gelu_row,   \
    .gelu_tanh_row = gelu_tanh_row, .sigmoid_mul_row = sigmoid_mul_row, .exp_row = exp_row, \
    .rotate_row = rotate_row, .peak = peak, .attend_tiles = attend_tiles,                   \
    .delta_conv = delta_conv, .delta_keys = delta_keys, .delta_head = delta_head,           \
    .code_floats = {CODE_FLOATS_8, CODE_FLOATS_16}, .code_bytes = sizeof(code),             \
    .round_rows = round_rows, .widen_codes = widen_codes, .tile_codes = tile_codes,         \
    .tile_codes_half = tile_codes_half

#endif
