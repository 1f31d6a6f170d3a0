/* image.c - tells formats apart, bounds them, and turns what was decoded.
 *
 * The first bytes decide, never a name or a declared type. Formats that people send and that are
 * not read here are known by name, so that the error can say what the bytes are. */
#include "media/image.h"

#include <stdlib.h>

#include "media/exif.h"
#include "media/image_codec.h"
#include "media/media.h"

enum { CHANNELS = 3 };

typedef struct {
    const char *name;
    size_t at; /* where the mark stands */
    str mark;
    image_decoder *decode; /* NULL: not read here */
    image_exif *exif;
} format;

#define MARK(s) \
    { (s), sizeof(s) - 1 }
static const format FORMATS[] = {
    {"PNG", 0, MARK("\x89PNG\r\n\x1a\n"), image_png_decode, image_png_exif},
    {"JPEG", 0, MARK("\xff\xd8\xff"), image_jpeg_decode, image_jpeg_exif},
    {"WebP", 8, MARK("WEBP"), image_webp_decode, image_webp_exif},
    {"GIF", 0, MARK("GIF8"), NULL, NULL},
    {"BMP", 0, MARK("BM"), NULL, NULL},
    {"TIFF", 0, MARK("II*\0"), NULL, NULL},
    {"TIFF", 0, MARK("MM\0*"), NULL, NULL},
    {"AVIF", 4, MARK("ftypavif"), NULL, NULL},
    {"HEIC", 4, MARK("ftyphei"), NULL, NULL},
    {"HEIC", 4, MARK("ftypmif1"), NULL, NULL},
    {"JPEG XL", 0, MARK("\xff\x0a"), NULL, NULL},
    {"JPEG XL", 4, MARK("JXL \r\n\x87\n"), NULL, NULL},
    {"JPEG 2000", 4, MARK("jP  \r\n\x87\n"), NULL, NULL},
    {"ICO", 0, MARK("\0\0\1\0"), NULL, NULL},
    {"PSD", 0, MARK("8BPS"), NULL, NULL},
    {"PDF", 0, MARK("%PDF-"), NULL, NULL},
    {"SVG", 0, MARK("<svg"), NULL, NULL},
};
#undef MARK

static const format *find_format(str bytes) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        const format *f = &FORMATS[i];
        if (bytes.n >= f->at + f->mark.n && memcmp(bytes.p + f->at, f->mark.p, f->mark.n) == 0)
            return f;
    }
    return NULL;
}

clef_status image_room(image *out, uint32_t w, uint32_t h, const image_options *options,
                       clef_error *err) {
    if (w == 0 || h == 0)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a picture of %u x %u pixels", options->where, w,
                         h);
    const uint64_t pixels = (uint64_t)w * h;
    if (pixels > options->max_pixels)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %u x %u pixels, the limit is %llu in all",
                         options->where, w, h, (unsigned long long)options->max_pixels);
    size_t bytes;
    if (pixels > SIZE_MAX || !size_mul(&bytes, (size_t)pixels, CHANNELS))
        return clef_fail_memory(err);
    uint8_t *rgb = malloc(bytes);
    if (rgb == NULL) return clef_fail_memory(err);
    *out = (image){.w = w, .h = h, .rgb = rgb};
    return CLEF_OK;
}

void image_free(image *i) {
    free(i->rgb);
    *i = (image){0};
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* Orientations 2..8 as in EXIF: which corner of the shown picture the first stored pixel is, and
 * along which side the first row runs. */
static bool swaps_sides(unsigned orientation) {
    return orientation >= 5;
}
static bool from_right(unsigned orientation) {
    return orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
}
static bool from_bottom(unsigned orientation) {
    return orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
}

static clef_status turn(image *i, unsigned orientation, clef_error *err) {
    const bool swap = swaps_sides(orientation);
    image turned = {.w = swap ? i->h : i->w, .h = swap ? i->w : i->h};
    turned.rgb = malloc((size_t)i->w * i->h * CHANNELS);
    if (turned.rgb == NULL) return clef_fail_memory(err);
    const uint8_t *from = i->rgb;
    for (uint32_t y = 0; y < i->h; y++)
        for (uint32_t x = 0; x < i->w; x++, from += CHANNELS) {
            uint32_t column = swap ? y : x, row = swap ? x : y;
            if (from_right(orientation)) column = turned.w - 1 - column;
            if (from_bottom(orientation)) row = turned.h - 1 - row;
            uint8_t *to = turned.rgb + ((size_t)row * turned.w + column) * CHANNELS;
            to[0] = from[0];
            to[1] = from[1];
            to[2] = from[2];
        }
    image_free(i);
    *i = turned;
    return CLEF_OK;
}

clef_status image_decode(image *out, str bytes, const image_options *options, clef_error *err) {
    const format *f = find_format(bytes);
    if (f == NULL)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: %zu bytes that are no picture, wanted a PNG, "
                         "JPEG or WebP file",
                         options->where, bytes.n);
    if (f->decode == NULL)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: a file of format %s; PNG, JPEG and WebP are read", options->where,
                         f->name);
    image decoded = {0};
    TRY(f->decode(&decoded, bytes, options, err));
    if (options->exif_rotate) {
        const unsigned orientation = exif_orientation(f->exif(bytes));
        if (orientation != 1) {
            const clef_status s = turn(&decoded, orientation, err);
            if (s != CLEF_OK) {
                image_free(&decoded);
                return s;
            }
        }
    }
    *out = decoded;
    return CLEF_OK;
}
