/* model.h - what the network's files share: the sizes, the weights, the place that computes, and
 * the working memory of one chunk of rows. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/arena.h"
#include "checkpoint/bind.h"
#include "checkpoint/config.h"
#include "compute/compute.h"

typedef struct {
    const config *cfg;
    const weights *w;
    compute *c;
    const float *frequencies; /* [rotary_dim / 2]; model/position */
    bool fast; /* round the inputs of linears whose weights are codes; model/backbone */
} model;

/* Working memory for up to max_rows rows at a time; what a buffer holds is said where it is used.
 * Its size depends on max_rows and the config, never on the length of a record. */
typedef struct {
    uint32_t max_rows;
    float *x;          /* [max_rows, hidden]: the residual stream */
    float *y;          /* [max_rows, hidden]: a normed copy of it */
    float *wide;       /* [max_rows, workspace_wide]: projections of one mixer, or gate and up */
    float *mixed;      /* [max_rows, inputs of o_proj or out_proj] */
    float *cos, *sin;  /* [max_rows, rotary_dim / 2] */
    float *panel;      /* packed rows for any linear of the backbone and the head */
    size_t panel_room; /* floats: max_rows rows, but fewer of the head's widest inputs */
    arena mem;
} workspace;

clef_status workspace_open(workspace *out, const config *cfg, uint32_t max_rows, clef_error *err);
void workspace_close(workspace *ws);
/* What workspace_open takes; SIZE_MAX when no machine has that much. */
size_t workspace_bytes(const config *cfg, uint32_t max_rows);

/* linear() over any number of rows, in blocks of ws->max_rows or fewer. x [n_rows, w->n_in] and out
 * [n_rows, w->n_out] are dense. */
void workspace_linear(const model *m, workspace *ws, float *out, const float *x, uint32_t n_rows,
                      const matrix *w, const float *bias, linear_mode mode);

#endif
