/* media_rules.h - the sizes of the released model, for tests of pictures and video; written out
 * here so that a change of the library's own table shows. */
#ifndef TESTS_MEDIA_RULES_H
#define TESTS_MEDIA_RULES_H

#include "media/media.h"

static const media_rules RULES = {
    .patch = 16,
    .temporal = 2,
    .merge = 2,
    .image_min_pixels = 65536,
    .image_max_pixels = 16777216,
    .video_min_pixels = 4096,
    .video_max_pixels = 25165824,
    .fps = 2.0,
    .min_frames = 4,
    .max_frames = 768,
    .mean = {0.5f, 0.5f, 0.5f},
    .std = {0.5f, 0.5f, 0.5f},
};

#endif
