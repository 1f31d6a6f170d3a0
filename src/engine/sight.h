/* sight.h - what a record sees: its pictures and videos on their way from pixels to rows of the
 * sequence. */
#ifndef ENGINE_SIGHT_H
#define ENGINE_SIGHT_H

#include "base/buf.h"
#include "engine/row_store.h"
#include "model/model.h"
#include "model/position.h"
#include "request/prompt.h"

/* What beside the request decides what is seen. */
typedef struct {
    media_options media; /* kwargs, max_rows and what was before: set by sight_load */
    uint64_t *n_pixels;  /* held for other records of the call; sight_load counts on; NULL: alone */
    row_store *store;    /* NULL where nothing is computed */
    const char *const *images, *const *videos; /* [n_images], [n_videos]: files, shown behind the
                                                * request's own */
    size_t n_images, n_videos;
} sight_options;

typedef struct sight sight;

/* Loads all media of a request, or sets *out NULL when it has none and no file is given. Everything
 * lives in `mem`, which is bounded by max_rows, the tokens that they may become. Errors name the
 * picture, as media_load does. */
clef_status sight_load(sight **out, const request *rq, const sight_options *o, uint32_t max_rows,
                       arena *mem, clef_error *err);

/* What the prompt is to be told: [*n]. */
const prompt_media *sight_media(const sight *s, uint32_t *n);

/* What tells one set of pictures from another: their digests, one behind the other. */
str sight_digests(const sight *s);

/* Settles where the rows stand, and every row's position, once the prompt is there. */
clef_status sight_place(sight *s, const prompt *p, arena *mem, clef_error *err);

/* Per row of the record [n_tokens]; what stands in `laid` is valid once no step is left. */
const position *sight_positions(const sight *s);
const float *const *sight_laid(const sight *s);

/* ---- on the computing thread ---- */

/* Whether rows of pictures are still to be computed, or to be found. */
bool sight_waits(const sight *s);

/* Whether a picture's computation is under way. */
bool sight_works(const sight *s);

/* One step of the tower, in up to max_rows patches; on failure no step may follow. */
clef_status sight_step(sight *s, const model *m, uint32_t max_rows, clef_error *err);

/* Leaves out what is still to be computed: no row of a picture will be looked at. */
void sight_skip(sight *s);

/* Tokens that pictures become, and those of them that are there, an unfinished picture in part. */
size_t sight_total(const sight *s);
size_t sight_done(const sight *s);

/* Lays `row` [hidden] over all pads from now on, whatever the pictures show; NULL: no longer. A
 * fault to be caught. */
void sight_blind(sight *s, const float *row);

/* Gives back what the steps took; they may be taken again. */
void sight_let_go(sight *s);

/* ---- looking ---- */

/* What the steps hold: the tower at its largest picture, which is gone when rows of the record are
 * computed, and the rows of all pictures, which stay. SIZE_MAX when no machine has that much. */
typedef struct {
    size_t tower, rows;
} sight_sizes;
sight_sizes sight_bytes(const sight *s, const config *cfg, uint32_t max_rows);

/* Appends the members that `clef encode` prints for a record with pictures: ", \"media\": [...],
 * \"positions\": [...]" . */
void sight_write(buf *out, const sight *s);

#endif
