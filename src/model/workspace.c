/* workspace.c - the buffers of one chunk, in one arena. */
#include "model/model.h"

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Floats a row of `wide` needs: the widest set of projections that live at the same time. */
static size_t wide_floats(const config *cfg) {
    const size_t attention =
        (size_t)2 * cfg->n_heads * cfg->head_dim + (size_t)2 * cfg->n_kv_heads * cfg->head_dim;
    const size_t values = (size_t)cfg->n_value_heads * cfg->value_dim;
    const size_t delta = config_channels(cfg) + values + (size_t)2 * cfg->n_value_heads;
    return larger(larger(attention, delta), (size_t)2 * cfg->intermediate);
}

static size_t mixed_floats(const config *cfg) {
    return larger((size_t)cfg->n_heads * cfg->head_dim,
                  (size_t)cfg->n_value_heads * cfg->value_dim);
}

/* The most inputs of any linear. */
static size_t most_inputs(const config *cfg) {
    const size_t backbone = larger(larger(cfg->hidden, cfg->intermediate), mixed_floats(cfg));
    return larger(backbone, larger((size_t)4 * cfg->head_width, cfg->head_feedforward));
}

clef_status workspace_open(workspace *out, const config *cfg, uint32_t max_rows, clef_error *err) {
    workspace ws = {.max_rows = max_rows};
    const size_t half = cfg->rotary_dim / 2;
    ws.x = arena_alloc(&ws.mem, (size_t)max_rows * cfg->hidden, sizeof(float));
    ws.y = arena_alloc(&ws.mem, (size_t)max_rows * cfg->hidden, sizeof(float));
    ws.wide = arena_alloc(&ws.mem, max_rows * wide_floats(cfg), sizeof(float));
    ws.mixed = arena_alloc(&ws.mem, max_rows * mixed_floats(cfg), sizeof(float));
    ws.cos = arena_alloc(&ws.mem, max_rows * half, sizeof(float));
    ws.sin = arena_alloc(&ws.mem, max_rows * half, sizeof(float));
    ws.panel =
        arena_alloc(&ws.mem, panel_floats(max_rows, (uint32_t)most_inputs(cfg)), sizeof(float));
    if (ws.x == NULL || ws.y == NULL || ws.wide == NULL || ws.mixed == NULL || ws.cos == NULL ||
        ws.sin == NULL || ws.panel == NULL) {
        arena_free(&ws.mem);
        return clef_fail(err, CLEF_ERR_MEMORY, "out of memory for the buffers of %u rows",
                         max_rows);
    }
    *out = ws;
    return CLEF_OK;
}

void workspace_close(workspace *ws) {
    arena_free(&ws->mem);
    *ws = (workspace){0};
}

void workspace_linear(const model *m, workspace *ws, float *out, const float *x, uint32_t n_rows,
                      const matrix *w, const float *bias, linear_mode mode) {
    for (uint32_t row = 0; row < n_rows; row += ws->max_rows) {
        const uint32_t n = n_rows - row < ws->max_rows ? n_rows - row : ws->max_rows;
        const panel p = panel_pack(m->c, ws->panel, x + (size_t)row * w->n_in, w->n_in, n, w->n_in);
        linear(m->c, out + (size_t)row * w->n_out, w->n_out, &p, w, bias, mode);
    }
}
