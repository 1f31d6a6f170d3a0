/* kernels.c - which kernel tables there are and which of them this processor can run. */
#include "compute/kernels.h"

#include "base/buf.h"

/* The best first. */
static const kernel_table *const tables[] = {
#if defined(__x86_64__)
    &kernels_avx2,
#endif
    &kernels_scalar,
};

enum { N_TABLES = sizeof tables / sizeof tables[0] };

static bool can_run(const kernel_table *t) {
    return (t->needs & ~cpu_features()) == 0;
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
    for (int i = 0; i < N_TABLES; i++)
        if (can_run(tables[i]))
            buf_printf(&names, "%s%s", names.n > 0 ? ", " : "", tables[i]->name);
    clef_status s = buf_status(&names, err);
    if (s == CLEF_OK)
        s = clef_fail(err, CLEF_ERR_INPUT, "kernels '%s': %s; this processor runs %s", name,
                      known ? "this processor lacks the instructions" : "there is no such table",
                      names.p);
    buf_free(&names);
    return s;
}
