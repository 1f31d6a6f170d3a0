/* body_tile_loop.h - the tile of one vector of rows and up to 12 outputs. No guard: body_tile.h
 * includes it once for each width of a vector, with VECTOR(_op) the operations of that width and
 * LOOP(tile) the name to give. */

ALWAYS_INLINE void LOOP(tile)(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                              uint32_t n_k, const size_t n_out) {
    enum { N_LANES = sizeof(VECTOR()) / sizeof(float) };
#define ZERO(o) VECTOR() sum##o = VECTOR(_set1)(0.0f);
    TWELVE(ZERO)
    for (uint32_t k = 0; k < n_k; k++) {
        const VECTOR() rows = VECTOR(_load)(x);
#define STEP(o) \
    if (o < n_out) sum##o = VECTOR(_fma)(rows, VECTOR(_set1)(w[o * w_out]), sum##o);
        TWELVE(STEP)
        x += N_LANES;
        w += w_k;
    }
#define ADD(o)                                                       \
    if (o < n_out) {                                                 \
        float *to = out + N_LANES * o;                               \
        VECTOR(_store)(to, VECTOR(_add)(VECTOR(_load)(to), sum##o)); \
    }
    TWELVE(ADD)
#undef ZERO
#undef STEP
#undef ADD
}
