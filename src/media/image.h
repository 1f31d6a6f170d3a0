/* image.h - an encoded picture to RGB pixels as Pillow's open().convert("RGB") gives them. */
#ifndef MEDIA_IMAGE_H
#define MEDIA_IMAGE_H

#include "base/interrupt.h"
#include "base/str.h"

/* {0} is empty. Free with image_free, which accepts that. */
typedef struct {
    uint32_t w, h;
    uint8_t *rgb; /* [h, w, 3] */
} image;

typedef struct {
    uint64_t max_pixels; /* of the stored picture, asked before anything is decoded */
    bool exif_rotate;    /* turn and mirror as the EXIF orientation says */
    const char *where;   /* begins every error: "images[2]" */
    interrupt stop;      /* asked every few rows, but for WebP */
} image_options;

/* Decodes PNG (of an animated one the default image), JPEG or WebP (the first frame); the bytes
 * decide which. CLEF_ERR_INPUT when they are no such picture or a broken one, CLEF_ERR_UNSUPPORTED
 * when they are another known format, CLEF_ERR_LIMIT when the header tells of more pixels than
 * allowed or a JPEG has more scans than any encoder writes; what options->stop answers. */
clef_status image_decode(image *out, str bytes, const image_options *options, clef_error *err);

void image_free(image *i);

#endif
