/* compute.h - where arithmetic happens: a kernel table over a pool of threads, and the verbs of the
 * network on rows of f32. It knows rows and matrices, not layers or questions.
 *
 * The bits promise lives here. Every output element is computed by one chain of operations whose
 * order depends on the shapes of the row alone: never on the number of threads, on the rows beside
 * it, on where a chunk was cut, or on the kernel table. Vector lanes are independent rows (or
 * independent columns), so any vector width gives the same bits:
 *   - a dot product over k is cut into blocks of LINEAR_BLOCK; inside a block one chain of fused
 *     multiply-adds in rising k from zero; block results are added in rising order;
 *   - where rows are integers (panel_round), each block of INT8_BLOCK is summed exactly and its
 * sum, times both scales, is added in rising order;
 *   - attention walks the keys in blocks of ATTEND_BLOCK counted from key 0, a running maximum per
 *     query;
 *   - the delta rule is the recurrence, one token after the other.
 * The scalar table is the definition. */
#ifndef COMPUTE_COMPUTE_H
#define COMPUTE_COMPUTE_H

#include <stdbool.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/tensor.h"

typedef struct compute compute;

/* What a worker has room for: heads of this size and a convolution of this many taps. A model
 * beyond them is refused when it is loaded. */
enum { MAX_HEAD_DIM = 512, MAX_CONV_KERNEL = 64 };

/* `kernels` names a table ("scalar", "avx2", "avx512", "avx512vnni", "neon", "neondot"); NULL takes
 * the default of this CPU, see kernels.c. CLEF_ERR_INPUT for an unknown name or one this CPU cannot
 * run, naming those it can. Close with compute_close. */
clef_status compute_open(compute **out, const char *kernels, unsigned threads, clef_error *err);
void compute_close(compute *c);
const char *compute_kernels(const compute *c);
unsigned compute_threads(const compute *c);

/* Numbers come from one thread at a time. Time is charged to the part last entered; the verbs add
 * their floating-point operations (a fused multiply-add is two) to it. */
void compute_enter(compute *c, int part /* CLEF_PART_... */);
typedef struct {
    double seconds[CLEF_N_PARTS], flops[CLEF_N_PARTS];
} compute_times;
/* What was charged since the last call, and starts anew. */
compute_times compute_take_times(compute *c);

/* Ceilings of this machine with this table on all threads: fused multiply-adds from registers
 * (1e9 floating-point operations a second), and streaming reads (1e9 bytes a second; memory is
 * allocated for the call, CLEF_ERR_MEMORY when there is none). */
double compute_peak_gflops(compute *c);
clef_status compute_read_gbps(compute *c, double *out, clef_error *err);

/* ---- linears ------------------------------------------------------------------------------ */

enum { LINEAR_BLOCK = 256 };

enum { INT8_BLOCK = 32, INT6_BYTES = 24, INT4_BYTES = 16 };

/* A weight as the file stores it: row-major [n_out, n_in], BF16, F16 or F32, any alignment. Or
 * codes with F16 scales [n_out, n_in / INT8_BLOCK], where n_in is a multiple of INT8_BLOCK: a
 * weight is then code * scale of its block, which f32 holds exactly. A block of codes is I8    32
 * bytes, each a code of -127 .. 127; INT4  16 bytes: byte j has code j + 8 in its low four bits and
 * code j + 16, plus 8, in its high ones; -7 .. 7; INT6  24 bytes: 16 as in INT4 with the low four
 * bits of code + 32, then 8 whose byte j has the high two bits of the codes j, j + 8, j + 16, j +
 * 24, the first lowest; -31 .. 31. */
typedef struct {
    const void *data;
    const void *scales; /* NULL unless the type is I8, INT6 or INT4 */
    dtype type;
    uint32_t n_out, n_in;
} matrix;

/* Rows rearranged for `linear`, in an order of its own. The memory is the caller's. */
typedef struct {
    float *data;
    uint32_t n_rows, n_cols;
    unsigned bits; /* 0: f32; 8 or 16: rounded to integers of so many bits */
} panel;

/* Floats that a panel of n_rows x n_cols needs. */
size_t panel_floats(uint32_t n_rows, uint32_t n_cols);

/* Packs x [n_rows, n_cols] with rows `stride` floats apart into `data` (panel_floats long, aligned
 * to 64 bytes). */
panel panel_pack(compute *c, float *data, const float *x, size_t stride, uint32_t n_rows,
                 uint32_t n_cols);

/* The same, with each row rounded in blocks of INT8_BLOCK columns to integers of 8 or 16 bits and a
 * scale, for weights that are codes: `linear` then sums products of integers. n_cols is a multiple
 * of INT8_BLOCK. It has its own bits; the promise above holds for them. */
panel panel_round(compute *c, float *data, const float *x, size_t stride, uint32_t n_rows,
                  uint32_t n_cols, unsigned bits);

typedef enum { LINEAR_SET, LINEAR_ADD } linear_mode;

/* out[r][o] = or += sum over k of x[r][k] w[o][k], then + bias[o] unless bias is NULL. Rows of out
 * are `stride` floats apart. w->n_in equals x->n_cols. */
void linear(compute *c, float *out, size_t stride, const panel *x, const matrix *w,
            const float *bias, linear_mode mode);

/* out [w->n_in] = row `row` of w, widened. */
void matrix_row(const compute *c, float *out, const matrix *w, size_t row);

/* What `threads` workers touch of their scratch, in bytes, when the widest linear has n_out outputs
 * and n_in inputs over n_rows rows, and heads have `head_dim` values at most. */
size_t compute_scratch_bytes(unsigned threads, uint32_t n_rows, uint32_t n_out, uint32_t n_in,
                             uint32_t head_dim);

/* ---- rows --------------------------------------------------------------------------------- */

/* out = x * rsqrt(mean(x^2) + eps) * weight, row by row; `out` may be `x`. Both [n_rows, n]. The
 * weight is the multiplier itself: the binder has added the one of "1 + w". */
void rms_norm(compute *c, float *out, const float *x, const float *weight, uint32_t n_rows,
              uint32_t n, float eps);

/* out = (x - mean) / sqrt(var + eps) * weight + bias with the biased variance; `out` may be `x`. */
void layer_norm(compute *c, float *out, const float *x, const float *weight, const float *bias,
                uint32_t n_rows, uint32_t n, float eps);

/* gate = SiLU(gate) * up, both [n_rows, n]. */
void silu_mul(compute *c, float *gate, const float *up, uint32_t n_rows, uint32_t n);

/* x = x * Phi(x), the exact form with erf. [n_rows, n] */
void gelu_erf(compute *c, float *x, uint32_t n_rows, uint32_t n);

/* x = x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which is another function. [n_rows, n]
 */
void gelu_tanh(compute *c, float *x, uint32_t n_rows, uint32_t n);

/* x[r][h * head_dim + i] *= sigmoid(gate[r][h * gate_head_stride + i]); rows of x are
 * n_heads * head_dim apart, rows of gate gate_stride. */
void sigmoid_gate(compute *c, float *x, const float *gate, size_t gate_stride,
                  size_t gate_head_stride, uint32_t n_rows, uint32_t n_heads, uint32_t head_dim);

/* Per head: rms norm over head_dim with `weight`, then rotation of the first rotary_dim values,
 * pairs (i, i + rotary_dim / 2), by the angles whose cosines and sines stand in cos and sin
 * [n_rows, rotary_dim / 2]. Head h of row r starts at x + r * stride + h * head_stride. In place.
 */
typedef struct {
    float *x;
    size_t stride, head_stride;
    uint32_t n_rows, n_heads, head_dim, rotary_dim;
    const float *weight, *cos, *sin;
    float eps;
} rotate_args;
void norm_rotate(compute *c, const rotate_args *a);

/* The rotation alone; weight and eps are not read. */
void rotate(compute *c, const rotate_args *a);

/* ---- attention ---------------------------------------------------------------------------- */

enum { ATTEND_BLOCK = 64 };

/* out = softmax(scale q k^T) v per query head; query head h reads key head h / (n_heads / n_kv).
 * Head h of query row r is q + r * q_stride + h * q_head_stride; key head b of key j is
 * k + j * kv_stride + b * head_dim, values likewise. Query r sees keys 0 .. first_pos + r when
 * causal, else all n_keys. n_keys >= 1; when causal first_pos + n_rows <= n_keys. */
typedef struct {
    float *out; /* [n_rows, n_heads * head_dim] */
    const float *q, *k, *v;
    size_t q_stride, q_head_stride, kv_stride;
    uint32_t n_rows, n_keys, n_heads, n_kv_heads, head_dim;
    uint32_t first_pos;
    bool causal;
    float scale;
} attend_args;
void attend(compute *c, const attend_args *a);

/* ---- Gated DeltaNet ----------------------------------------------------------------------- */

/* Everything between the projections and out_proj, for n_rows consecutive tokens of one record:
 * convolution and SiLU over all channels, L2 norm of q and k (eps 1e-6 on the sum), q scaled by
 * key_dim^-0.5, the recurrence of MODEL.md section 2, gated norm. State is read and left as it is
 * after the last row, so a record may be cut anywhere. */
typedef struct {
    float *out;           /* [n_rows, n_value_heads * value_dim] */
    float *qkv;           /* [n_rows, channels]: the raw projection; overwritten */
    const float *z;       /* [n_rows, n_value_heads * value_dim] */
    const float *a, *b;   /* [n_rows, n_value_heads] */
    const float *conv;    /* [channels, conv_kernel] */
    const float *decay;   /* [n_value_heads]: -exp(A_log) */
    const float *dt_bias; /* [n_value_heads] */
    const float *norm;    /* [value_dim], the plain multiplier */
    float *history;       /* [conv_kernel - 1, channels], oldest first; zero at a record's start */
    float *state;         /* [n_value_heads, key_dim, value_dim]; zero at a record's start */
    uint32_t n_rows, n_key_heads, n_value_heads, key_dim, value_dim, conv_kernel;
    float eps;
} delta_args;
void gated_delta(compute *c, const delta_args *a);

#endif
