/* image_png.c - PNG through libpng; the only file that includes its header.
 *
 * Pillow's conversion to RGB, which the reference does, decides what is asked of the library:
 *   - alpha and tRNS are dropped, not blended;
 *   - gray of 1, 2 and 4 bits is stretched to 0..255;
 *   - a palette index past the palette's end is black, which libpng makes of it too;
 *   - 16 bits keep their high byte, except gray without alpha, where values above 255 become 255;
 *   - gamma, profiles and all other chunks are ignored, so they are not even unpacked.
 * Once its last row is there libpng unpacks what is left to the end, which a few bytes can make
 * gigabytes; only so much of it is handed over as the end of a sound file takes.
 *
 * Of an animated file libpng reads the default image, which is Pillow's first frame too.
 *
 * Rows arrive in the picture's own memory, gray ones in 1 or 2 bytes a pixel, and are spread to
 * three from their end backwards. */
#include "media/image_codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

enum {
    CHANNELS = 3,
    SIGNATURE = 8,
    CHUNK_HEAD = 8,
    CHUNK_CRC = 4,
    PASSES = 7,
    REST = 1024,
    ASK_ROWS = 64
};

typedef struct {
    str bytes; /* not read yet */
    const image_options *options;
    clef_error *err;
    clef_status status;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    size_t rest; /* bytes read since the last row was complete */
    image out;
} reader;

static bool is_complete(png_structp png, png_infop info) {
    return png_get_interlace_type(png, info) != PNG_INTERLACE_NONE
               ? png_get_current_pass_number(png) >= PASSES
               : png_get_current_row_number(png) >= png_get_image_height(png, info);
}

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->bytes.n) png_error(png, "the file ends too early");
    if (r->rows != NULL && is_complete(png, r->info)) r->rest += n;
    if (r->rest > REST) png_error(png, "more data than the picture has rows for");
    memcpy(to, r->bytes.p, n);
    r->bytes = (str){r->bytes.p + n, r->bytes.n - n};
}

static void fail(png_structp png, png_const_charp text) {
    reader *r = png_get_error_ptr(png);
    r->status =
        clef_fail(r->err, CLEF_ERR_INPUT, "%s: a broken PNG file: %s", r->options->where, text);
    longjmp(png_jmpbuf(png), 1);
}

/* Called behind each row of each pass. */
static void row_is_there(png_structp png, png_uint_32 row, int pass) {
    reader *r = png_get_io_ptr(png);
    (void)pass;
    if (row % ASK_ROWS != 0) return;
    r->status = interrupt_ask(&r->options->stop, r->err);
    if (r->status != CLEF_OK) longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

/* ---- spreading gray rows -----------------------------------------------------------------------
 */

static void spread_gray(uint8_t *row, uint32_t w) {
    for (uint32_t x = w; x-- > 0;) memset(row + (size_t)x * CHANNELS, row[x], CHANNELS);
}

static void spread_gray16(uint8_t *row, uint32_t w) {
    for (uint32_t x = w; x-- > 0;) {
        const uint32_t v = be16(row + (size_t)x * 2);
        memset(row + (size_t)x * CHANNELS, v > UINT8_MAX ? UINT8_MAX : (int)v, CHANNELS);
    }
}

static void spread(reader *r, int color, int depth) {
    if ((color & PNG_COLOR_MASK_COLOR) != 0) return;
    const bool wide = color == PNG_COLOR_TYPE_GRAY && depth == 16;
    for (uint32_t y = 0; y < r->out.h; y++) {
        if (wide)
            spread_gray16(r->rows[y], r->out.w);
        else
            spread_gray(r->rows[y], r->out.w);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void start(reader *r) {
    png_set_read_fn(r->png, r, read_bytes);
    png_set_read_status_fn(r->png, row_is_there);
    /* Every chunk that may be left out and libpng knows; tRNS is not among them, and is dropped. */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(r->png, r->info);
}

static void decode(reader *r) {
    start(r);
    const int color = png_get_color_type(r->png, r->info);
    const int depth = png_get_bit_depth(r->png, r->info);
    const uint32_t w = png_get_image_width(r->png, r->info);
    const uint32_t h = png_get_image_height(r->png, r->info);
    r->status = image_room(&r->out, w, h, r->options, r->err);
    if (r->status != CLEF_OK) return;
    r->rows = malloc(h * sizeof *r->rows);
    if (r->rows == NULL) {
        r->status = clef_fail_memory(r->err);
        return;
    }
    for (uint32_t y = 0; y < h; y++) r->rows[y] = r->out.rgb + (size_t)y * w * CHANNELS;
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(r->png);
    if (depth == 16 && color != PNG_COLOR_TYPE_GRAY) png_set_strip_16(r->png);
    png_set_strip_alpha(r->png); /* a palette may have got it from tRNS */
    png_read_image(r->png, r->rows);
    spread(r, color, depth);
}

clef_status image_png_decode(image *out, str bytes, const image_options *options, clef_error *err) {
    reader r = {.bytes = bytes, .options = options, .err = err};
    /* Everything that a jump could lose lives behind this pointer. */
    reader *const volatile kept = &r;
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, ignore_warning);
    r.info = r.png == NULL ? NULL : png_create_info_struct(r.png);
    if (r.info == NULL)
        r.status = clef_fail_memory(err);
    else if (setjmp(png_jmpbuf(r.png)) == 0)
        decode(kept);
    png_destroy_read_struct(&kept->png, &kept->info, NULL);
    free(kept->rows);
    if (kept->status != CLEF_OK) {
        image_free(&kept->out);
        return kept->status;
    }
    *out = kept->out;
    return CLEF_OK;
}

str image_png_exif(str bytes) {
    size_t at = SIGNATURE;
    while (at <= bytes.n && bytes.n - at >= CHUNK_HEAD + CHUNK_CRC) {
        const unsigned char *chunk = (const unsigned char *)bytes.p + at;
        const size_t length = be32(chunk);
        if (length > bytes.n - at - CHUNK_HEAD - CHUNK_CRC) break;
        if (memcmp(chunk + 4, "eXIf", 4) == 0) return (str){bytes.p + at + CHUNK_HEAD, length};
        at += CHUNK_HEAD + length + CHUNK_CRC;
    }
    return (str){0};
}
