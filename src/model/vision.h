/* vision.h - the vision tower: the patches of a picture or a video to rows as wide as the
 * decoder's. MODEL.md, "The vision tower". */
#ifndef MODEL_VISION_H
#define MODEL_VISION_H

#include "media/media.h"
#include "model/model.h"

/* Gives patch rows first .. first + n - 1 to out [n, VISION_PATCH_VALUES], in merge-block order. */
typedef void vision_patches(void *context, float *out, uint32_t first, uint32_t n);

/* Called after the embedding (block 0) and after each block i (as i + 1) with the rows of patches
 * [t * h * w, hidden]; for tests that compare every border with the reference. */
typedef void vision_watch(void *context, uint32_t block, const float *x);

typedef struct {
    media_grid grid; /* of patches; h and w are even */
    vision_patches *patches;
    void *patches_context;
    vision_watch *watch; /* may be NULL */
    void *watch_context;
} vision_input;

/* Rows of the decoder that a grid becomes. */
static inline uint32_t vision_rows(media_grid g) {
    return g.t * (g.h / VISION_MERGE) * (g.w / VISION_MERGE);
}

/* A tower at work on one picture or video. */
typedef struct vision vision;

/* Begins out [vision_rows, cfg->hidden] with the tower of m, which has one, in steps of at most
 * max_rows patches (4 at least). The bits depend on the patches and the grid alone. `out`, m and
 * what the input points to outlive the work; vision_close accepts NULL and an unfinished one. */
clef_status vision_open(vision **out, const model *m, float *rows, const vision_input *in,
                        uint32_t max_rows, clef_error *err);
void vision_close(vision *v);

/* Takes the next step; false when there is none left and the rows are complete. */
bool vision_step(vision *v);

/* How much is done, from 0 to 1. */
double vision_share(const vision *v);

/* What vision_open takes, without the rows; SIZE_MAX when no machine has that much. */
size_t vision_bytes(const config *cfg, media_grid grid, uint32_t max_rows);

#endif
