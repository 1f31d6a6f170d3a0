/* backbone.h - token rows through the decoder layers, in chunks. MODEL.md section 2. */
#ifndef MODEL_BACKBONE_H
#define MODEL_BACKBONE_H

#include "model/model.h"
#include "model/position.h"

/* What the layers carry from one chunk of a record to the next. A record may be cut anywhere:
 * the bits do not depend on where. */
typedef struct {
    uint32_t n_done;   /* tokens already computed */
    uint32_t capacity; /* tokens there is room for; asserted */
    float **keys,
        **values;    /* per layer: [capacity, n_kv_heads * head_dim]; NULL for delta layers */
    float **history; /* per layer: [conv_kernel - 1, channels]; NULL for attention layers */
    float **state;   /* per layer: [n_value_heads, key_dim, value_dim]; likewise */
    arena mem;
} sequence;

/* Room for a record of `n_tokens`, at its start. */
clef_status sequence_open(sequence *out, const config *cfg, uint32_t n_tokens, clef_error *err);
void sequence_close(sequence *s);
/* What sequence_open takes; SIZE_MAX when no machine has that much. */
size_t sequence_bytes(const config *cfg, uint32_t n_tokens);

/* Copies the keys and values of n rows, from row `first` of `from` on, to row `at` of `to` and
 * after; both have room for them. */
void sequence_copy_rows(sequence *to, uint32_t at, const sequence *from, uint32_t first, uint32_t n,
                        const config *cfg);
/* Copies what does not grow: the delta layers' history and state. */
void sequence_copy_state(sequence *to, const sequence *from, const config *cfg);

/* Consecutive rows of one record within a chunk. */
typedef struct {
    sequence *seq;
    const int32_t *ids; /* [n_rows], the record's ids from seq->n_done on */
    uint32_t n_rows;
    const position *positions; /* [n_rows]; NULL: text, whose positions are the rows' numbers */
    const float *const *laid;  /* [n_rows]: a row [hidden] that stands there instead of the id's
                                * embedding, or NULL; NULL where there are none */
} segment;

/* Whether `fast` of a model with these weights changes anything: some input of a linear is read by
 * weights with codes alone. */
bool backbone_can_round(const config *cfg, const weights *w);

/* Called after the embedding (layer 0) and after each layer i (as i + 1) with the residual stream
 * [n_rows, hidden], and at last (n_layers + 1) with the final-norm rows; for tests that compare
 * every border with the reference. */
typedef void backbone_watch(void *context, uint32_t layer, const float *x);

/* Computes the rows of all segments, back to back, and leaves the final-norm hidden rows in
 * ws->y [sum of n_rows, hidden]. The sum is at most ws->max_rows; ids are within the vocabulary.
 * Advances every seq->n_done. `watch` may be NULL. */
void backbone_chunk(const model *m, workspace *ws, const segment *segments, uint32_t n_segments,
                    backbone_watch *watch, void *context);

#endif
