/* resize.h - the sizes that pictures and frames are brought to, and the bicubic filter that does it
 * bit for bit as the reference's two image libraries do. MODEL.md, "Pictures and video". */
#ifndef MEDIA_RESIZE_H
#define MEDIA_RESIZE_H

#include "media/media.h"

/* Sides that are multiples of `factor`, near h x w (both positive), with a product inside the
 * bounds: the reference's smart_resize. `where` begins the error: CLEF_ERR_INPUT when one side is
 * more than 200 times the other, CLEF_ERR_LIMIT when the result would be past MEDIA_MOST_PIXELS. */
clef_status resize_image_sides(uint32_t *out_h, uint32_t *out_w, uint32_t h, uint32_t w,
                               uint32_t factor, uint64_t min_pixels, uint64_t max_pixels,
                               const char *where, clef_error *err);

/* The same for n frames of h x w, whose bounds hold for all frames together. `temporal` frames make
 * a group. MEDIA_ROUND_CEIL refuses a side shorter than `factor`, MEDIA_ROUND_EVEN a video shorter
 * than `temporal`. */
clef_status resize_video_sides(uint32_t *out_h, uint32_t *out_w, uint32_t n, uint32_t h, uint32_t w,
                               uint32_t factor, uint32_t temporal, uint64_t min_pixels,
                               uint64_t max_pixels, media_video_rounding rounding,
                               const char *where, clef_error *err);

typedef enum {
    RESIZE_ATEN,  /* torch's uint8 kernel: what the torchvision backend uses */
    RESIZE_PILLOW /* Image.resize */
} resize_mode;

/* Resizes in[h, w, 3] to out[out_h, out_w, 3], all sides positive; the two must not overlap. Fails
 * only for want of memory. */
clef_status resize_rgb(uint8_t *out, uint32_t out_h, uint32_t out_w, const uint8_t *in, uint32_t h,
                       uint32_t w, resize_mode mode, clef_error *err);

#endif
