/* body_codes_loop.h - the tile of integers for one vector of rows and up to 12 outputs. No guard:
 * body_codes.h includes it once for each width of a vector, with VECTOR(_op) and INTS(_op) the
 * operations of that width and LOOP(codes) the name to give. */

ALWAYS_INLINE void LOOP(codes)(float *out, const float *rows, const code *w, const float *w_scales,
                               uint32_t n_k, size_t n_planes, const size_t n_out) {
    enum { N_LANES = sizeof(VECTOR()) / sizeof(float) };
    const size_t n_blocks = n_k / INT8_BLOCK;
    for (size_t block = 0; block < n_blocks; block++) {
        const code *x = (const code *)(const void *)rows;
#define ZERO(o) INTS() sum##o = INTS(_zero)();
        TWELVE(ZERO)
        for (size_t plane = 0; plane < n_planes; plane++) {
            if (plane > 0) {
#define SHIFT(o) sum##o = INTS(_times_256)(sum##o);
                TWELVE(SHIFT)
            }
            for (size_t step = 0; step < CODE_STEPS; step++) {
                const INTS(_rows) x_rows = INTS(_load_rows)(x);
#define STEP(o)    \
    if (o < n_out) \
        sum##o = INTS(_dot)(sum##o, x_rows, INTS(_load_weights)(w + o * n_k + step * CODE_STEP));
                TWELVE(STEP)
                x += N_LANES * CODE_STEP;
            }
        }
        rows = (const float *)(const void *)x;
        const VECTOR() row_scale = VECTOR(_load)(rows);
#define ADD(o)                                                                        \
    if (o < n_out) {                                                                  \
        float *to = out + N_LANES * o;                                                \
        const VECTOR() scale = VECTOR(_set1)(w_scales[o * n_blocks]);                 \
        const VECTOR() product = VECTOR(_mul)(VECTOR(_from_ints)(sum##o), row_scale); \
        VECTOR(_store)(to, VECTOR(_fma)(product, scale, VECTOR(_load)(to)));          \
    }
        TWELVE(ADD)
        rows += N_LANES;
        w += INT8_BLOCK;
        w_scales++;
    }
#undef ZERO
#undef SHIFT
#undef STEP
#undef ADD
}
