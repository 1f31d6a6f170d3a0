/* kernels.c - which kernel tables there are and which of them this processor can run. */
#include "compute/kernels.h"

#include "base/buf.h"

/* The default first: the order in which docs/speed.md measured them, fastest first. */
static const kernel_table *const tables[] = {
#if defined(__x86_64__)
    &kernels_avx512vnni, &kernels_avx512, &kernels_avx2,
#endif
#if defined(__aarch64__)
    &kernels_neondot,    &kernels_neon,
#endif
    &kernels_scalar,
};

enum { N_TABLES = sizeof tables / sizeof tables[0] };

static bool can_run(const kernel_table *t) {
    return (t->needs & ~cpu_features()) == 0;
}

const kernel_table *kernels_at(size_t i) {
    for (size_t t = 0; t < N_TABLES; t++)
        if (can_run(tables[t]) && i-- == 0) return tables[t];
    return NULL;
}

clef_status kernels_choose(const kernel_table **out, const char *name, clef_error *err) {
    bool known = false;
    for (int i = 0; i < N_TABLES; i++) {
        if (name != NULL && strcmp(name, tables[i]->name) != 0) continue;
        known = true;
        if (!can_run(tables[i])) continue;
        *out = tables[i];
        return CLEF_OK;
    }
    buf names = {0};
    const kernel_table *t;
    for (size_t i = 0; (t = kernels_at(i)) != NULL; i++)
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", t->name);
    clef_status s = buf_status(&names, err);
    if (s == CLEF_OK)
        s = clef_fail(err, CLEF_ERR_INPUT, "kernels '%s': %s; this processor runs %s", name,
                      known ? "this processor lacks the instructions" : "there is no such table",
                      names.p);
    buf_free(&names);
    return s;
}
