/* pictures.h - the members of a request that carry pictures and video: `images`, `videos` and
 * `media_kwargs`. */
#ifndef REQUEST_PICTURES_H
#define REQUEST_PICTURES_H

#include "media/media.h"
#include "text/json.h"

/* {0} is a request from text alone. */
typedef struct {
    const media_ref *refs; /* [n_images + n_videos]: images first, then videos, as in the prompt */
    uint32_t n_images, n_videos;
    media_kwargs kwargs;
} pictures;

/* Reads the three members of `root`, an object. Nothing is decoded yet: what a string holds is for
 * media_load to say. Everything *out points to lives in `mem`, which also holds `root`. Errors
 * begin with the JSON path ("images[2]", "media_kwargs.fps"): CLEF_ERR_INPUT for a member of the
 * wrong kind, CLEF_ERR_UNSUPPORTED for a key of media_kwargs that is not taken here. */
clef_status pictures_read(pictures *out, const json *root, arena *mem, clef_error *err);

#endif
