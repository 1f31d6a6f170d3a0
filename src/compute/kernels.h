/* kernels.h - the inner loops, one table of them per instruction set.
 *
 * The loops are written once, in body_*.h, over the eight lanes of lanes_*.h; each kernels_NAME.c
 * includes its lanes and the bodies and exports one table. So all tables perform the same
 * operations in the same order, and a new instruction set is a new lanes file. */
#ifndef COMPUTE_KERNELS_H
#define COMPUTE_KERNELS_H

#include "base/cpu.h"
#include "compute/compute.h"

enum {
    TILE_LANES = 16, /* rows of a panel that lie side by side */
    TILE_OUTS = 6,   /* outputs that any `tile` computes at a time; some do HALF_OUTS */
    HALF_LANES = 8,  /* the same for `tile_half`, which takes a panel's last rows */
    HALF_OUTS = 12,

    ATTEND_TILES = 4, /* tiles that share a block of keys and values while it is in cache */

    DELTA_CHANNELS = 64,
    DELTA_COLUMNS = 32, /* value columns of a head that walk the tokens together */
    DELTA_ROWS = 64     /* tokens that they walk before the next columns do */
};

/* Query rows row0 .. row0 + n_rows - 1 of one head, at most TILE_LANES. */
typedef struct {
    uint32_t head, row0, n_rows;
} attend_tile;

typedef struct {
    const char *name;
    uint32_t needs; /* CPU_... bits of base/cpu.h */

    uint32_t tile_outs; /* outputs that `tile` and `tile_codes` compute at a time, at most */

    /* out[o][lane] += one chain over k of x[k][lane] * w[o * w_out + k * w_k], for n_out <=
     * tile_outs outputs. x [n_k][TILE_LANES], out [n_out][TILE_LANES]; both aligned to 32 bytes. */
    void (*tile)(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                 uint32_t n_out, uint32_t n_k);
    /* The same for HALF_LANES rows: x [n_k][HALF_LANES], out [n_out][HALF_LANES]. */
    void (*tile_half)(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                      uint32_t n_out, uint32_t n_k);
    /* out[row][o] = total[o][row], behind what is there when `add`, before bias[o] unless NULL. out
     * [n_rows] rows `stride` floats apart, total [n_out][n_lanes]; n_lanes is TILE_LANES or
     * HALF_LANES, n_rows at most that. */
    void (*store_tile)(float *out, size_t stride, const float *total, uint32_t n_lanes,
                       uint32_t n_rows, uint32_t n_out, const float *bias, bool add);
    /* Widens n stored values to f32, from value `first` on in row-major order; of codes whole
     * blocks. */
    void (*widen)(float *out, const matrix *w, size_t first, size_t n);
    /* The same for n_out <= TILE_LANES rows of the weight, n <= LINEAR_BLOCK values of each, laid
     * across: out [n][TILE_LANES], aligned to 32 bytes, with zeros for missing rows. Of codes whole
     * blocks, too. */
    void (*widen_across)(float *out, const matrix *w, size_t first, uint32_t n_out, size_t n);

    /* The same for rows that were rounded to integers of `bits` bits (8 or 16); see body_codes.h.
     * Of such rows a block of INT8_BLOCK columns takes code_floats[bits == 16] floats a lane, and a
     * code of a weight code_bytes bytes. round_rows makes n_lanes lanes of n_rows rows, `stride`
     * floats apart, and widen_codes codes and scales of n values that a weight stores as codes, in
     * whole blocks. The tiles take n_k columns, a multiple of INT8_BLOCK; w [n_out][n_k] and
     * w_scales [n_out][n_k / INT8_BLOCK] from widen_codes. */
    uint32_t code_floats[2], code_bytes;
    void (*round_rows)(float *out, const float *x, size_t stride, uint32_t n_rows, uint32_t n_lanes,
                       uint32_t n_k, unsigned bits);
    void (*widen_codes)(void *codes, float *scales, const matrix *w, size_t first, size_t n);
    void (*tile_codes)(float *out, const float *x, const void *w, const float *w_scales,
                       uint32_t n_out, uint32_t n_k, unsigned bits);
    void (*tile_codes_half)(float *out, const float *x, const void *w, const float *w_scales,
                            uint32_t n_out, uint32_t n_k, unsigned bits);

    void (*rms_norm_row)(float *out, const float *x, const float *weight, uint32_t n, float eps);
    void (*layer_norm_row)(float *out, const float *x, const float *weight, const float *bias,
                           uint32_t n, float eps);
    void (*silu_mul_row)(float *gate, const float *up, size_t n);
    void (*gelu_row)(float *x, size_t n);
    void (*gelu_tanh_row)(float *x, size_t n);
    void (*sigmoid_mul_row)(float *x, const float *gate, size_t n);
    void (*exp_row)(float *x, size_t n);
    void (*rotate_row)(float *x, uint32_t rotary_dim, const float *cos, const float *sin);

    /* Attention of up to ATTEND_TILES tiles that read the same key head; see body_attend.h.
     * `scratch`, aligned to 64 bytes, holds the scores of a block, and for each tile its queries,
     * its sums, and two floats a lane. */
    void (*attend_tiles)(const attend_args *a, const attend_tile *tiles, uint32_t n_tiles,
                         float *scratch);

    /* The steps of gated_delta in their order: up to DELTA_CHANNELS channels, one row, one value
     * head; see body_delta.h. `scratch`, aligned to 64 bytes, holds key_dim x DELTA_COLUMNS
     * floats. */
    void (*delta_conv)(const delta_args *a, uint32_t channel0, uint32_t n_channels);
    void (*delta_keys)(const delta_args *a, uint32_t row);
    void (*delta_head)(const delta_args *a, uint32_t value_head, float *scratch);

    /* `n` rounds of independent fused multiply-adds; returns a value that depends on all of them.
     * *flops gets the operations done. */
    float (*peak)(uint64_t n, double *flops);
} kernel_table;

extern const kernel_table kernels_scalar;
#if defined(__x86_64__)
extern const kernel_table kernels_avx2, kernels_avx512, kernels_avx512vnni;
#endif
#if defined(__aarch64__)
extern const kernel_table kernels_neon, kernels_neondot;
#endif

/* The i-th table of this build that this processor can run, the default first and the scalar one
 * last; NULL behind it. */
const kernel_table *kernels_at(size_t i);

/* The table called `name`, or the default of this processor when NULL. CLEF_ERR_INPUT names the
 * tables that it can run. */
clef_status kernels_choose(const kernel_table **out, const char *name, clef_error *err);

#endif
