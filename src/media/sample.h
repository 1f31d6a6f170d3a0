/* sample.h - which frames of a video are taken, and when they were shown. MODEL.md, "Pictures and
 * video". */
#ifndef MEDIA_SAMPLE_H
#define MEDIA_SAMPLE_H

#include "media/media.h"

typedef struct {
    uint32_t n;
    const uint32_t *frames; /* [n] which of the given frames, rising or repeated */
    const double *seconds;  /* [ceil(n / temporal)] time of each group */
    uint32_t n_groups;
} sample;

/* Chooses among `n_given` frames as the request's `kwargs` (NULL: none) and the model's rules say;
 * `fps` is what the frames' source tells (0: nothing), unless the request tells another;
 * `index` is the video's place among the request's videos, which picks its metadata. Everything
 * *out points to lives in `mem`. CLEF_ERR_INPUT when what is asked for cannot be had. */
clef_status sample_frames(sample *out, uint32_t n_given, double fps, uint32_t index,
                          const media_rules *rules, const media_kwargs *kwargs, const char *where,
                          arena *mem, clef_error *err);

#endif
