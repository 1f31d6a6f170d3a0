/* image_codec.h - what image.c asks of the decoders, one file for each format. */
#ifndef MEDIA_IMAGE_CODEC_H
#define MEDIA_IMAGE_CODEC_H

#include "media/image.h"

/* Each decodes bytes that begin as its format does. On failure *out stays empty. */
typedef clef_status image_decoder(image *out, str bytes, const image_options *options,
                                  clef_error *err);
image_decoder image_png_decode, image_jpeg_decode, image_webp_decode;

/* The TIFF structure that holds a picture's EXIF data, as bytes of the file; empty when there is
 * none. They look at the file's outline only and never fail. */
typedef str image_exif(str bytes);
image_exif image_png_exif, image_jpeg_exif, image_webp_exif;

/* Checks the sides against the limit and takes room for the pixels. */
clef_status image_room(image *out, uint32_t w, uint32_t h, const image_options *options,
                       clef_error *err);

/* Big- and little-endian numbers of 2 and 4 bytes. */
static inline uint32_t be16(const unsigned char *p) {
    return (uint32_t)p[0] << 8 | p[1];
}
static inline uint32_t be32(const unsigned char *p) {
    return be16(p) << 16 | be16(p + 2);
}
static inline uint32_t le16(const unsigned char *p) {
    return (uint32_t)p[1] << 8 | p[0];
}
static inline uint32_t le32(const unsigned char *p) {
    return le16(p + 2) << 16 | le16(p);
}

#endif
