/* delta_test.c - the Gated DeltaNet against MODEL.md section 2 in double precision, by the
 * recurrence and by the chunked form that the reference runs, and its bits against themselves: over
 * kernel tables, threads, and every place where the rows may be cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compute/kernels.h"

#include "compute/compute.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct {
    uint32_t n_rows, n_key_heads, n_value_heads, key_dim, value_dim, conv_kernel;
} sizes;

/* Operands that own their memory. `raw` is what a.qkv held before a run overwrote it, `history0`
 * and `state0` likewise; reset() puts them back. */
typedef struct {
    delta_args a;
    size_t channels, value_width, history_floats, state_floats;
    float *raw, *qkv, *z, *a_rows, *b_rows, *conv, *decay, *dt_bias, *norm;
    float *history0, *history, *state0, *state, *out;
} operands;

static uint32_t random_bits = 1;

/* Uniform in [-1, 1). */
static float random_value(void) {
    random_bits = random_bits * 1664525 + 1013904223;
    return (float)(random_bits >> 8) / (1 << 23) - 1;
}

static float *floats(size_t n, float scale) {
    float *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = scale * random_value();
    return x;
}

static void reset(operands *o) {
    memcpy(o->qkv, o->raw, o->a.n_rows * o->channels * sizeof(float));
    memcpy(o->history, o->history0, o->history_floats * sizeof(float));
    memcpy(o->state, o->state0, o->state_floats * sizeof(float));
}

/* Random operands in the middle of a record: history and state are not zero. */
static operands make(sizes s) {
    operands o = {0};
    random_bits = s.n_rows * 131 + s.key_dim * 17 + s.value_dim * 5 + s.n_value_heads;
    o.value_width = (size_t)s.n_value_heads * s.value_dim;
    o.channels = 2 * (size_t)s.n_key_heads * s.key_dim + o.value_width;
    o.history_floats = (s.conv_kernel - 1) * o.channels;
    o.state_floats = o.value_width * s.key_dim;
    o.raw = floats(s.n_rows * o.channels, 2);
    o.qkv = floats(s.n_rows * o.channels, 1);
    o.z = floats(s.n_rows * o.value_width, 2);
    o.a_rows = floats((size_t)s.n_rows * s.n_value_heads, 2);
    o.b_rows = floats((size_t)s.n_rows * s.n_value_heads, 3);
    o.conv = floats(o.channels * s.conv_kernel, 1);
    o.decay = floats(s.n_value_heads, 1);
    for (uint32_t h = 0; h < s.n_value_heads; h++) o.decay[h] = -expf(2 * o.decay[h]);
    o.dt_bias = floats(s.n_value_heads, 1);
    o.norm = floats(s.value_dim, 1);
    o.history0 = floats(o.history_floats, 2);
    o.history = floats(o.history_floats, 1);
    o.state0 = floats(o.state_floats, 0.5F);
    o.state = floats(o.state_floats, 1);
    o.out = floats(s.n_rows * o.value_width, 1);
    o.a = (delta_args){.out = o.out,
                       .qkv = o.qkv,
                       .z = o.z,
                       .a = o.a_rows,
                       .b = o.b_rows,
                       .conv = o.conv,
                       .decay = o.decay,
                       .dt_bias = o.dt_bias,
                       .norm = o.norm,
                       .history = o.history,
                       .state = o.state,
                       .n_rows = s.n_rows,
                       .n_key_heads = s.n_key_heads,
                       .n_value_heads = s.n_value_heads,
                       .key_dim = s.key_dim,
                       .value_dim = s.value_dim,
                       .conv_kernel = s.conv_kernel,
                       .eps = 1e-6F};
    reset(&o);
    return o;
}

static void drop(operands *o) {
    float *all[] = {o->raw,     o->qkv,  o->z,        o->a_rows,  o->b_rows, o->conv,  o->decay,
                    o->dt_bias, o->norm, o->history0, o->history, o->state0, o->state, o->out};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static void run(operands *o, const char *kernels, unsigned threads) {
    compute *c = NULL;
    assert_int_equal(compute_open(&c, kernels, threads, NULL), CLEF_OK);
    reset(o);
    gated_delta(c, &o->a);
    compute_close(c);
}

/* ---- double precision --------------------------------------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double *doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* The rows after convolution, SiLU, L2 norm and scale: [n_rows, channels]. */
static double *reference_rows(const operands *o) {
    const delta_args *a = &o->a;
    double *rows = doubles(a->n_rows * o->channels);
    for (uint32_t t = 0; t < a->n_rows; t++) {
        for (size_t ch = 0; ch < o->channels; ch++) {
            double sum = 0;
            for (uint32_t i = 0; i < a->conv_kernel; i++) {
                const uint32_t at = t + i; /* counted from the oldest row of the history */
                const float x = at < a->conv_kernel - 1
                                    ? o->history0[at * o->channels + ch]
                                    : o->raw[(at - a->conv_kernel + 1) * o->channels + ch];
                sum += (double)x * a->conv[ch * a->conv_kernel + i];
            }
            rows[t * o->channels + ch] = sum * sigmoid(sum);
        }
        for (uint32_t h = 0; h < 2 * a->n_key_heads; h++) {
            double *x = rows + t * o->channels + (size_t)h * a->key_dim;
            double squares = 0;
            for (uint32_t i = 0; i < a->key_dim; i++) squares += x[i] * x[i];
            const double scale = h < a->n_key_heads ? 1 / sqrt(a->key_dim) : 1;
            for (uint32_t i = 0; i < a->key_dim; i++) x[i] *= scale / sqrt(squares + 1e-6);
        }
    }
    return rows;
}

static double reference_g(const delta_args *a, uint32_t row, uint32_t head) {
    const double x = (double)a->a[row * a->n_value_heads + head] + a->dt_bias[head];
    return a->decay[head] * log1p(exp(x));
}

/* What one head reads and writes: q, k, v of a row, S [key_dim][value_dim], o [n_rows][value_dim].
 */
typedef struct {
    const operands *o;
    const double *rows;
    uint32_t head;
    double *s, *out;
} head_run;

static const double *query(const head_run *r, uint32_t row) {
    const delta_args *a = &r->o->a;
    const uint32_t key_head = r->head / (a->n_value_heads / a->n_key_heads);
    return r->rows + row * r->o->channels + (size_t)key_head * a->key_dim;
}
static const double *key(const head_run *r, uint32_t row) {
    return query(r, row) + (size_t)r->o->a.n_key_heads * r->o->a.key_dim;
}
static const double *value(const head_run *r, uint32_t row) {
    const delta_args *a = &r->o->a;
    return r->rows + row * r->o->channels + 2 * (size_t)a->n_key_heads * a->key_dim +
           (size_t)r->head * a->value_dim;
}
static double beta(const head_run *r, uint32_t row) {
    return sigmoid(r->o->a.b[row * r->o->a.n_value_heads + r->head]);
}

static double dot(const double *x, const double *y, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* The recurrence of MODEL.md section 2. */
static void recurrent(const head_run *r) {
    const delta_args *a = &r->o->a;
    const uint32_t dk = a->key_dim, dv = a->value_dim;
    for (uint32_t t = 0; t < a->n_rows; t++) {
        const double fade = exp(reference_g(a, t, r->head));
        for (uint32_t j = 0; j < dv; j++) {
            double seen = 0, read = 0;
            for (uint32_t i = 0; i < dk; i++) {
                r->s[i * dv + j] *= fade;
                seen += r->s[i * dv + j] * key(r, t)[i];
            }
            const double u = beta(r, t) * (value(r, t)[j] - seen);
            for (uint32_t i = 0; i < dk; i++) {
                r->s[i * dv + j] += key(r, t)[i] * u;
                read += r->s[i * dv + j] * query(r, t)[i];
            }
            r->out[t * dv + j] = read;
        }
    }
}

/* Chunks of 64. The rows of V' are the u of the recurrence, found by forward substitution in
 *     (I + A) V' = diag(beta) (V - diag(e^G) K S)
 * where A_ij = beta_i (k_i . k_j) e^(G_i - G_j) below the diagonal and 0 elsewhere, G is the
 * running sum of g inside the chunk, and S the state that enters it. */
static void chunked(const head_run *r) {
    enum { CHUNK = 64 };
    const delta_args *a = &r->o->a;
    const uint32_t dk = a->key_dim, dv = a->value_dim;
    double *u = doubles((size_t)CHUNK * dv);
    for (uint32_t row0 = 0; row0 < a->n_rows; row0 += CHUNK) {
        const uint32_t n = a->n_rows - row0 < CHUNK ? a->n_rows - row0 : CHUNK;
        double g[CHUNK];
        for (uint32_t i = 0; i < n; i++)
            g[i] = (i > 0 ? g[i - 1] : 0) + reference_g(a, row0 + i, r->head);
        for (uint32_t i = 0; i < n; i++) {
            const double b = beta(r, row0 + i);
            for (uint32_t j = 0; j < dv; j++) {
                double sum = value(r, row0 + i)[j];
                for (uint32_t d = 0; d < dk; d++)
                    sum -= exp(g[i]) * key(r, row0 + i)[d] * r->s[d * dv + j];
                u[i * dv + j] = b * sum;
            }
            for (uint32_t l = 0; l < i; l++) {
                const double w = b * dot(key(r, row0 + i), key(r, row0 + l), dk) * exp(g[i] - g[l]);
                for (uint32_t j = 0; j < dv; j++) u[i * dv + j] -= w * u[l * dv + j];
            }
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < dv; j++) {
                double sum = 0;
                for (uint32_t d = 0; d < dk; d++)
                    sum += exp(g[i]) * query(r, row0 + i)[d] * r->s[d * dv + j];
                r->out[(row0 + i) * dv + j] = sum;
            }
            for (uint32_t l = 0; l <= i; l++) {
                const double w = dot(query(r, row0 + i), key(r, row0 + l), dk) * exp(g[i] - g[l]);
                for (uint32_t j = 0; j < dv; j++) r->out[(row0 + i) * dv + j] += w * u[l * dv + j];
            }
        }
        for (uint32_t d = 0; d < dk; d++) {
            for (uint32_t j = 0; j < dv; j++) {
                r->s[d * dv + j] *= exp(g[n - 1]);
                for (uint32_t l = 0; l < n; l++)
                    r->s[d * dv + j] += exp(g[n - 1] - g[l]) * key(r, row0 + l)[d] * u[l * dv + j];
            }
        }
    }
    free(u);
}

/* Compares out and state after a run with `rule` in double: the largest difference, of out relative
 * to the row's gate and norm weight, which are at most a few units. */
static double worst_error(const operands *o, void (*rule)(const head_run *)) {
    const delta_args *a = &o->a;
    const uint32_t dv = a->value_dim;
    double *rows = reference_rows(o);
    double *s = doubles((size_t)a->key_dim * dv), *out = doubles((size_t)a->n_rows * dv);
    double worst = 0;
    for (uint32_t h = 0; h < a->n_value_heads; h++) {
        const size_t s_at = (size_t)h * a->key_dim * dv, s_floats = (size_t)a->key_dim * dv;
        for (size_t i = 0; i < s_floats; i++) s[i] = o->state0[s_at + i];
        rule(&(head_run){o, rows, h, s, out});
        for (size_t i = 0; i < s_floats; i++) {
            const double error = fabs(s[i] - o->state[s_at + i]);
            if (!(error <= worst)) worst = error; /* NaN counts */
        }
        for (uint32_t t = 0; t < a->n_rows; t++) {
            const double mean = dot(out + (size_t)t * dv, out + (size_t)t * dv, dv) / dv;
            for (uint32_t j = 0; j < dv; j++) {
                const size_t at = ((size_t)t * a->n_value_heads + h) * dv + j;
                const double gate = o->z[at] * sigmoid(o->z[at]);
                const double want = out[t * dv + j] / sqrt(mean + a->eps) * a->norm[j] * gate;
                const double error = fabs(want - o->out[at]);
                if (!(error <= worst)) worst = error;
            }
        }
    }
    free(rows);
    free(s);
    free(out);
    return worst;
}

static void check(operands *o) {
    run(o, NULL, 2);
    const double recurrence = worst_error(o, recurrent), chunks = worst_error(o, chunked);
    if (!(recurrence <= 2e-5 && chunks <= 2e-5))
        fail_msg("%u rows, heads %u/%u, %u x %u: off by %g from the recurrence, %g from the chunks",
                 o->a.n_rows, o->a.n_key_heads, o->a.n_value_heads, o->a.key_dim, o->a.value_dim,
                 recurrence, chunks);
}

/* ---- the printed anchors ------------------------------------------------------------------ */

/* The x with SiLU(x) = y, for y above SiLU's minimum; on the branch through zero. */
static float before_silu(double y) {
    double low = -1.27, high = 100;
    for (int i = 0; i < 200; i++) {
        const double middle = (low + high) / 2;
        if (middle * sigmoid(middle) < y)
            low = middle;
        else
            high = middle;
    }
    return (float)low;
}

/* Two tokens whose outputs and last state were worked out apart. The verb cannot be fed q, k and v
 * themselves, so the taps pass the current row, the rows hold what SiLU turns into them, v is an
 * eighth (SiLU does not reach -1; S and o are linear in v), and eps is so large that the norm is a
 * constant factor, which `norm` takes back together with q's scale. */
static void two_tokens_give_the_printed_example(void **state) {
    (void)state;
    operands o = make((sizes){2, 1, 1, 2, 2, 4});
    const double qkv[2][6] = {{1, 0, 0.6, 0.8, 2 / 8.0, -1 / 8.0},
                              {0.6, 0.8, 1, 0, 0.5 / 8, 3 / 8.0}};
    for (int t = 0; t < 2; t++)
        for (int ch = 0; ch < 6; ch++) o.raw[t * 6 + ch] = before_silu(qkv[t][ch]);
    for (int ch = 0; ch < 6; ch++)
        for (int i = 0; i < 4; i++) o.conv[ch * 4 + i] = i == 3 ? 1.0f : 0.0f;
    memset(o.state0, 0, o.state_floats * sizeof(float));
    o.b_rows[0] = 0;
    o.b_rows[1] = logf(3); /* sigmoid 0.75 */
    o.decay[0] = -1;
    o.dt_bias[0] = 0;
    o.a_rows[0] = (float)log(expm1(0.25));
    o.a_rows[1] = (float)log(expm1(0.5));
    o.a.eps = 1e12F;
    o.norm[0] = o.norm[1] = (float)(8 * sqrt(2) * 1e6);
    for (int i = 0; i < 4; i++) o.z[i] = before_silu(1);
    run(&o, NULL, 1);
    const double want[4] = {0.6, -0.3, 0.667768, 1.128616};
    for (int i = 0; i < 4; i++) assert_float_equal(o.out[i], want[i], 2e-6);
    const double want_state[4] = {0.465980, 2.204510, 0.485225, -0.242612};
    for (int i = 0; i < 4; i++) assert_float_equal(8 * o.state[i], want_state[i], 2e-6);
    drop(&o);
}

/* A_log 0.3, a 0.7, dt_bias -1.2: e^g is 0.527326. A zero key leaves only the decay. */
static void the_decay_gives_the_printed_example(void **state) {
    (void)state;
    operands o = make((sizes){1, 1, 1, 2, 2, 2});
    memset(o.raw, 0, o.channels * sizeof(float));
    memset(o.history0, 0, o.history_floats * sizeof(float));
    o.decay[0] = -expf(0.3F);
    o.a_rows[0] = 0.7F;
    o.dt_bias[0] = -1.2F;
    for (int i = 0; i < 4; i++) o.state0[i] = 1;
    run(&o, NULL, 1);
    for (int i = 0; i < 4; i++) assert_float_equal(o.state[i], 0.527326, 5e-7);
    drop(&o);
}

/* ---- against the loops -------------------------------------------------------------------- */

static void sizes_that_fill_no_vector_match(void **state) {
    (void)state;
    static const uint32_t key_dims[] = {1, 12, 20, 32}, value_dims[] = {1, 12, 20, 36, 64};
    for (size_t k = 0; k < COUNT(key_dims); k++) {
        for (size_t v = 0; v < COUNT(value_dims); v++) {
            operands o = make((sizes){70, 2, 2, key_dims[k], value_dims[v], 4});
            check(&o);
            drop(&o);
        }
    }
}

static void the_sizes_of_the_model_match(void **state) {
    (void)state;
    operands o = make((sizes){130, 2, 4, 128, 128, 4});
    check(&o);
    drop(&o);
}

/* Value head m reads key head m div 2 here: heads are grouped, not tiled. */
static void value_heads_read_the_key_head_of_their_group(void **state) {
    (void)state;
    operands two = make((sizes){20, 2, 4, 12, 12, 4});
    check(&two);
    drop(&two);
    operands three = make((sizes){20, 2, 6, 12, 12, 4});
    check(&three);
    drop(&three);
}

static void any_number_of_taps_matches(void **state) {
    (void)state;
    static const uint32_t n_taps[] = {1, 2, 3, 4, 5, 6, 7, 8, MAX_CONV_KERNEL};
    for (size_t i = 0; i < COUNT(n_taps); i++) {
        for (uint32_t n_rows = 1; n_rows <= 10; n_rows++) {
            operands o = make((sizes){n_rows, 1, 2, 12, 20, n_taps[i]});
            check(&o);
            drop(&o);
        }
    }
}

/* Repeated tokens: a chunked form that inverts I + A by a product series breaks on them. */
static void repeated_keys_match(void **state) {
    (void)state;
    operands o = make((sizes){150, 1, 2, 20, 36, 4});
    for (uint32_t t = 1; t < 150; t++) {
        if (t % 50 != 0)
            memcpy(o.raw + t * o.channels, o.raw + (t - 1) * o.channels,
                   o.channels * sizeof(float));
    }
    check(&o);
    drop(&o);
}

static void a_state_that_hardly_fades_matches(void **state) {
    (void)state;
    operands o = make((sizes){150, 1, 2, 20, 36, 4});
    o.decay[0] = -1e-6F;
    o.decay[1] = 0;
    check(&o);
    drop(&o);
}

static void a_state_that_is_forgotten_at_once_matches(void **state) {
    (void)state;
    operands o = make((sizes){150, 1, 2, 20, 36, 4});
    o.decay[0] = -20;
    o.decay[1] = -500;
    check(&o);
    drop(&o);
}

static void the_history_keeps_the_last_raw_rows(void **state) {
    (void)state;
    for (uint32_t n_rows = 1; n_rows <= 5; n_rows++) {
        operands o = make((sizes){n_rows, 1, 1, 12, 20, 4});
        run(&o, NULL, 1);
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t at = n_rows + i; /* counted from the oldest row of the history */
            const float *want =
                at < 3 ? o.history0 + at * o.channels : o.raw + (at - 3) * o.channels;
            assert_memory_equal(o.history + i * o.channels, want, o.channels * sizeof(float));
        }
        drop(&o);
    }
}

/* ---- bits --------------------------------------------------------------------------------- */

/* The results of the run before, to compare another with. */
typedef struct {
    float *out, *state, *history;
} results;

static float *copy_of(const float *x, size_t n) {
    float *copy = malloc((n + 1) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, x, n * sizeof *copy);
    return copy;
}

static results take(const operands *o) {
    return (results){copy_of(o->out, o->a.n_rows * o->value_width),
                     copy_of(o->state, o->state_floats), copy_of(o->history, o->history_floats)};
}

static void assert_same_bits(const results *want, const operands *o) {
    assert_memory_equal(want->out, o->out, o->a.n_rows * o->value_width * sizeof(float));
    assert_memory_equal(want->state, o->state, o->state_floats * sizeof(float));
    assert_memory_equal(want->history, o->history, o->history_floats * sizeof(float));
}

static void forget(results *r) {
    free(r->out);
    free(r->state);
    free(r->history);
}

static void every_table_gives_the_bits_of_the_scalar_one(void **state) {
    (void)state;
    static const sizes all[] = {
        {70, 2, 4, 20, 36, 4}, {9, 1, 3, 12, 12, 2}, {3, 1, 1, 128, 128, 8}};
    for (size_t i = 0; i < COUNT(all); i++) {
        operands o = make(all[i]);
        run(&o, "scalar", 1);
        results want = take(&o);
        for (size_t t = 0; kernels_at(t) != NULL; t++) {
            run(&o, kernels_at(t)->name, 1);
            assert_same_bits(&want, &o);
        }
        forget(&want);
        drop(&o);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    operands o = make((sizes){130, 3, 6, 20, 36, 4});
    run(&o, NULL, 1);
    results want = take(&o);
    for (unsigned threads = 2; threads <= 9; threads++) {
        run(&o, NULL, threads);
        assert_same_bits(&want, &o);
    }
    forget(&want);
    drop(&o);
}

/* Rows first .. first + n - 1 of the record. */
static delta_args part(const operands *o, uint32_t first, uint32_t n) {
    delta_args a = o->a;
    a.n_rows = n;
    a.out += first * o->value_width;
    a.qkv += first * o->channels;
    a.z += first * o->value_width;
    a.a += (size_t)first * a.n_value_heads;
    a.b += (size_t)first * a.n_value_heads;
    return a;
}

static void rows_cut_anywhere_keep_their_bits(void **state) {
    (void)state;
    operands o = make((sizes){70, 1, 2, 12, 20, 4});
    run(&o, NULL, 2);
    results want = take(&o);
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 2, NULL), CLEF_OK);
    for (uint32_t cut = 1; cut < 70; cut++) {
        reset(&o);
        const delta_args before = part(&o, 0, cut), after = part(&o, cut, 70 - cut);
        gated_delta(c, &before);
        gated_delta(c, &after);
        assert_same_bits(&want, &o);
    }
    compute_close(c);
    forget(&want);
    drop(&o);
}

static void one_row_at_a_time_gives_the_bits_of_512_rows(void **state) {
    (void)state;
    operands o = make((sizes){512, 2, 4, 36, 36, 4});
    run(&o, NULL, 2);
    results want = take(&o);
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    reset(&o);
    for (uint32_t t = 0; t < 512; t++) {
        const delta_args row = part(&o, t, 1);
        gated_delta(c, &row);
    }
    compute_close(c);
    assert_same_bits(&want, &o);
    forget(&want);
    drop(&o);
}

/* A NaN must reach the check at the end, not turn into a plausible number. */
static void a_value_that_is_not_a_number_stays_visible(void **state) {
    (void)state;
    operands o = make((sizes){6, 1, 1, 12, 12, 4}); /* v from column 24 */
    o.raw[2 * o.channels + 29] = NAN;
    run(&o, NULL, 1);
    assert_false(isnan(o.out[1 * 12 + 5]));
    assert_true(isnan(o.out[2 * 12 + 5]));
    assert_true(isnan(o.out[5 * 12 + 5]));
    drop(&o);
}

static void the_recurrence_counts_seven_operations_an_element(void **state) {
    (void)state;
    operands o = make((sizes){10, 1, 2, 12, 20, 4});
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    compute_take_times(c);
    compute_enter(c, 0);
    gated_delta(c, &o.a);
    const compute_times times = compute_take_times(c);
    const double convolution = 10.0 * (double)o.channels * 2 * 4;
    assert_float_equal(times.flops[0], 10.0 * 2 * 7 * 12 * 20 + convolution, 0.5);
    compute_close(c);
    drop(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tokens_give_the_printed_example),
        cmocka_unit_test(the_decay_gives_the_printed_example),
        cmocka_unit_test(sizes_that_fill_no_vector_match),
        cmocka_unit_test(the_sizes_of_the_model_match),
        cmocka_unit_test(value_heads_read_the_key_head_of_their_group),
        cmocka_unit_test(any_number_of_taps_matches),
        cmocka_unit_test(repeated_keys_match),
        cmocka_unit_test(a_state_that_hardly_fades_matches),
        cmocka_unit_test(a_state_that_is_forgotten_at_once_matches),
        cmocka_unit_test(the_history_keeps_the_last_raw_rows),
        cmocka_unit_test(every_table_gives_the_bits_of_the_scalar_one),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(rows_cut_anywhere_keep_their_bits),
        cmocka_unit_test(one_row_at_a_time_gives_the_bits_of_512_rows),
        cmocka_unit_test(a_value_that_is_not_a_number_stays_visible),
        cmocka_unit_test(the_recurrence_counts_seven_operations_an_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
