/* rows.c - the verbs that work row by row: norms, gates, the rotation. An item of work is a run of
 * rows; the arithmetic of a row is in body_rows.h. */
#include "compute/compute.h"

#include "compute/compute_internal.h"

/* Rows of one item: few enough to share out a chunk, enough that claiming costs nothing. */
enum { ITEM_ROWS = 8 };

typedef struct {
    const kernel_table *kernels;
    uint32_t n_rows;
    void (*row)(const kernel_table *kernels, const void *args, size_t row);
    const void *args;
} rows_job;

static void rows_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const rows_job *j = context;
    const size_t first = item * ITEM_ROWS;
    for (size_t row = first; row < first + ITEM_ROWS && row < j->n_rows; row++)
        j->row(j->kernels, j->args, row);
}

static void for_rows(compute *c, uint32_t n_rows,
                     void (*row)(const kernel_table *, const void *, size_t), const void *args) {
    rows_job job = {c->kernels, n_rows, row, args};
    pool_run(c->workers, ((size_t)n_rows + ITEM_ROWS - 1) / ITEM_ROWS, rows_item, &job);
}

typedef struct {
    float *out;
    const float *x, *weight, *bias; /* bias: layer_norm only */
    uint32_t n;
    float eps;
} norm_args;

static void rms_norm_one(const kernel_table *kernels, const void *args, size_t row) {
    const norm_args *a = args;
    kernels->rms_norm_row(a->out + row * a->n, a->x + row * a->n, a->weight, a->n, a->eps);
}

void rms_norm(compute *c, float *out, const float *x, const float *weight, uint32_t n_rows,
              uint32_t n, float eps) {
    for_rows(c, n_rows, rms_norm_one, &(norm_args){out, x, weight, NULL, n, eps});
}

static void layer_norm_one(const kernel_table *kernels, const void *args, size_t row) {
    const norm_args *a = args;
    kernels->layer_norm_row(a->out + row * a->n, a->x + row * a->n, a->weight, a->bias, a->n,
                            a->eps);
}

void layer_norm(compute *c, float *out, const float *x, const float *weight, const float *bias,
                uint32_t n_rows, uint32_t n, float eps) {
    for_rows(c, n_rows, layer_norm_one, &(norm_args){out, x, weight, bias, n, eps});
}

typedef struct {
    float *x;
    const float *other;
    uint32_t n;
} pair_args;

static void silu_mul_one(const kernel_table *kernels, const void *args, size_t row) {
    const pair_args *a = args;
    kernels->silu_mul_row(a->x + row * a->n, a->other + row * a->n, a->n);
}

void silu_mul(compute *c, float *gate, const float *up, uint32_t n_rows, uint32_t n) {
    for_rows(c, n_rows, silu_mul_one, &(pair_args){gate, up, n});
}

static void gelu_one(const kernel_table *kernels, const void *args, size_t row) {
    const pair_args *a = args;
    kernels->gelu_row(a->x + row * a->n, a->n);
}

void gelu_erf(compute *c, float *x, uint32_t n_rows, uint32_t n) {
    for_rows(c, n_rows, gelu_one, &(pair_args){x, NULL, n});
}

static void gelu_tanh_one(const kernel_table *kernels, const void *args, size_t row) {
    const pair_args *a = args;
    kernels->gelu_tanh_row(a->x + row * a->n, a->n);
}

void gelu_tanh(compute *c, float *x, uint32_t n_rows, uint32_t n) {
    for_rows(c, n_rows, gelu_tanh_one, &(pair_args){x, NULL, n});
}

typedef struct {
    float *x;
    const float *gate;
    size_t gate_stride, gate_head_stride;
    uint32_t n_heads, head_dim;
} gate_args;

static void sigmoid_gate_one(const kernel_table *kernels, const void *args, size_t row) {
    const gate_args *a = args;
    for (size_t head = 0; head < a->n_heads; head++)
        kernels->sigmoid_mul_row(a->x + (row * a->n_heads + head) * a->head_dim,
                                 a->gate + row * a->gate_stride + head * a->gate_head_stride,
                                 a->head_dim);
}

void sigmoid_gate(compute *c, float *x, const float *gate, size_t gate_stride,
                  size_t gate_head_stride, uint32_t n_rows, uint32_t n_heads, uint32_t head_dim) {
    const gate_args args = {x, gate, gate_stride, gate_head_stride, n_heads, head_dim};
    for_rows(c, n_rows, sigmoid_gate_one, &args);
}

static void norm_rotate_one(const kernel_table *kernels, const void *args, size_t row) {
    const rotate_args *a = args;
    const size_t angles = row * (a->rotary_dim / 2);
    for (size_t head = 0; head < a->n_heads; head++) {
        float *x = a->x + row * a->stride + head * a->head_stride;
        kernels->rms_norm_row(x, x, a->weight, a->head_dim, a->eps);
        kernels->rotate_row(x, a->rotary_dim, a->cos + angles, a->sin + angles);
    }
}

void norm_rotate(compute *c, const rotate_args *a) {
    for_rows(c, a->n_rows, norm_rotate_one, a);
}

static void rotate_one(const kernel_table *kernels, const void *args, size_t row) {
    const rotate_args *a = args;
    const size_t angles = row * (a->rotary_dim / 2);
    for (size_t head = 0; head < a->n_heads; head++)
        kernels->rotate_row(a->x + row * a->stride + head * a->head_stride, a->rotary_dim,
                            a->cos + angles, a->sin + angles);
}

void rotate(compute *c, const rotate_args *a) {
    for_rows(c, a->n_rows, rotate_one, a);
}
