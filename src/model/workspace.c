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

/* Floats of the panel. Every token passes the backbone and the head's memory; the head's wider
 * inputs come once for an option and may take several steps. */
static size_t panel_room(const config *cfg, uint32_t max_rows) {
    const size_t backbone = larger(larger(cfg->hidden, cfg->intermediate), mixed_floats(cfg));
    const size_t widest = larger((size_t)4 * cfg->head_width, cfg->head_feedforward);
    return larger(panel_floats(max_rows, (uint32_t)larger(backbone, cfg->head_width)),
                  panel_floats(1, (uint32_t)widest));
}

/* Takes the buffers from out->mem; false when there is not enough. */
static bool reserve(workspace *out, const config *cfg, uint32_t max_rows) {
    workspace ws = *out;
    const size_t half = cfg->rotary_dim / 2;
    ws.x = arena_alloc(&ws.mem, (size_t)max_rows * cfg->hidden, sizeof(float));
    ws.y = arena_alloc(&ws.mem, (size_t)max_rows * cfg->hidden, sizeof(float));
    ws.wide = arena_alloc(&ws.mem, max_rows * wide_floats(cfg), sizeof(float));
    ws.mixed = arena_alloc(&ws.mem, max_rows * mixed_floats(cfg), sizeof(float));
    ws.cos = arena_alloc(&ws.mem, max_rows * half, sizeof(float));
    ws.sin = arena_alloc(&ws.mem, max_rows * half, sizeof(float));
    ws.panel_room = panel_room(cfg, max_rows);
    ws.panel = arena_alloc(&ws.mem, ws.panel_room, sizeof(float));
    *out = ws;
    return ws.x != NULL && ws.y != NULL && ws.wide != NULL && ws.mixed != NULL && ws.cos != NULL &&
           ws.sin != NULL && ws.panel != NULL;
}

size_t workspace_bytes(const config *cfg, uint32_t max_rows) {
    workspace ws = {.mem.count_only = true};
    const size_t bytes = reserve(&ws, cfg, max_rows) ? ws.mem.total_bytes : SIZE_MAX;
    arena_free(&ws.mem);
    return bytes;
}

clef_status workspace_open(workspace *out, const config *cfg, uint32_t max_rows, clef_error *err) {
    workspace ws = {.max_rows = max_rows};
    if (!reserve(&ws, cfg, max_rows)) {
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
    uint32_t step = ws->max_rows;
    while (panel_floats(step, w->n_in) > ws->panel_room) step = step / 2 + step % 2;
    for (uint32_t row = 0; row < n_rows; row += step) {
        const uint32_t n = n_rows - row < step ? n_rows - row : step;
        const panel p = panel_pack(m->c, ws->panel, x + (size_t)row * w->n_in, w->n_in, n, w->n_in);
        linear(m->c, out + (size_t)row * w->n_out, w->n_out, &p, w, bias, mode);
    }
}
