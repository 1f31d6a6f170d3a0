/* image_jpeg.c - JPEG through libjpeg-turbo; the only file that includes its headers.
 *
 * The library's defaults are kept, as Pillow keeps them: the accurate integer transform, smooth
 * chroma upsampling, no scaling. Gray is copied to three channels. Four channels come as CMYK (the
 * library turns YCCK into it), stored inverted by every program that writes them; Pillow undoes
 * that for all and then takes k' - c k' / 255 with k' = 255 - k, rounded. Of the stored bytes C and
 * K, whose inverses those are, that is K - (255 - C) K / 255.
 *
 * What the library calls a warning about the data (a cut file, a wrong code) is an error here: what
 * it puts in place of the lost part is no picture to decide on. Pillow agrees for cut files and
 * lets other damage pass.
 *
 * A progressive file pays for every scan with a walk over all coefficients, so scans are counted
 * before anything is decoded. Encoders write about ten. */
#include "media/image_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

/* jpeglib.h uses FILE and size_t without asking for them. */
#include <jpeglib.h>

#include <jerror.h>

enum {
    CHANNELS = 3,
    INKS = 4,
    MAX_SCANS = 100,
    M_PREFIX = 0xFF,
    M_SOI = 0xD8,
    M_EOI = 0xD9,
    M_SOS = 0xDA,
    M_APP1 = 0xE1,
    M_RST0 = 0xD0,
    M_RST7 = 0xD7,
    M_TEM = 0x01
};

/* ---- the outline ----------------------------------------------------------------------------- */

/* The next marker with a segment: its code, and the segment without its length in *segment. 0 at
 * the end, or where no marker can be found any more. *at moves behind the segment. */
static unsigned next_segment(str *segment, size_t *at, str bytes) {
    const unsigned char *p = (const unsigned char *)bytes.p;
    for (size_t i = *at; i + 1 < bytes.n;) {
        const unsigned char *found = memchr(p + i, M_PREFIX, bytes.n - 1 - i);
        if (found == NULL) return 0;
        i = (size_t)(found - p);
        const unsigned code = p[i + 1];
        const bool fill = code == M_PREFIX;
        i += fill ? 1 : 2;
        if (fill || code == 0 || code == M_TEM || code == M_SOI ||
            (code >= M_RST0 && code <= M_RST7))
            continue;
        if (code == M_EOI || bytes.n - i < 2) return 0;
        const size_t length = be16(p + i);
        if (length < 2 || length > bytes.n - i) return 0;
        *segment = (str){bytes.p + i + 2, length - 2};
        *at = i + length;
        return code;
    }
    return 0;
}

str image_jpeg_exif(str bytes) {
    const str mark = STR("Exif\0\0");
    str segment = {0};
    size_t at = 0;
    for (;;) {
        const unsigned code = next_segment(&segment, &at, bytes);
        if (code == 0 || code == M_SOS) return (str){0};
        if (code == M_APP1 && segment.n >= mark.n && memcmp(segment.p, mark.p, mark.n) == 0)
            return (str){segment.p + mark.n, segment.n - mark.n};
    }
}

static clef_status check_scans(str bytes, const image_options *options, clef_error *err) {
    str segment = {0};
    size_t at = 0;
    unsigned scans = 0;
    for (;;) {
        const unsigned code = next_segment(&segment, &at, bytes);
        if (code == 0) return CLEF_OK;
        if (code == M_SOS && ++scans > MAX_SCANS)
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: a JPEG file of more than %d scans",
                             options->where, MAX_SCANS);
    }
}

/* ---- decoding -------------------------------------------------------------------------------- */

typedef struct {
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf exit;
    const image_options *options;
    clef_error *err;
    clef_status status;
    uint8_t *inks; /* a row of CMYK */
    image out;
} reader;

static void leave(j_common_ptr common) {
    reader *r = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    r->status = common->err->msg_code == JERR_OUT_OF_MEMORY
                    ? clef_fail_memory(r->err)
                    : clef_fail(r->err, CLEF_ERR_INPUT, "%s: a broken JPEG file: %s",
                                r->options->where, text);
    longjmp(r->exit, 1);
}

static void hear(j_common_ptr common, int level) {
    if (level >= 0) return; /* traces */
    switch (common->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
        leave(common);
    default:
        return;
    }
}

static void say_nothing(j_common_ptr common) {
    (void)common;
}

/* Called for each row of blocks, of every scan. */
static void ask_whether_to_go_on(j_common_ptr common) {
    reader *r = common->client_data;
    r->status = interrupt_ask(&r->options->stop, r->err);
    if (r->status != CLEF_OK) longjmp(r->exit, 1);
}

/* One row of stored CMYK to RGB. */
static void mix_inks(uint8_t *to, const uint8_t *inks, uint32_t w) {
    for (uint32_t x = 0; x < w; x++, inks += INKS, to += CHANNELS) {
        const int key = inks[3];
        for (int c = 0; c < CHANNELS; c++) {
            /* Pillow's division by 255: (v + 128 + ((v + 128) >> 8)) >> 8. */
            const int v = (UINT8_MAX - inks[c]) * key + 128;
            const int rest = key - ((v + (v >> 8)) >> 8);
            to[c] = (uint8_t)(rest < 0 ? 0 : rest);
        }
    }
}

static void decode(reader *r, str bytes) {
    j_decompress_ptr library = &r->library;
    jpeg_create_decompress(library);
    r->progress.progress_monitor = ask_whether_to_go_on;
    library->progress = &r->progress;
    jpeg_mem_src(library, (const unsigned char *)bytes.p, (unsigned long)bytes.n);
    jpeg_read_header(library, TRUE);
    const uint32_t w = library->image_width, h = library->image_height;
    const bool inks = library->num_components == INKS;
    r->status = image_room(&r->out, w, h, r->options, r->err);
    if (r->status != CLEF_OK) return;
    if (inks && (r->inks = malloc((size_t)w * INKS)) == NULL) {
        r->status = clef_fail_memory(r->err);
        return;
    }
    library->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(library);
    while (library->output_scanline < h) {
        uint8_t *row = r->out.rgb + (size_t)library->output_scanline * w * CHANNELS;
        JSAMPROW to = inks ? r->inks : row;
        jpeg_read_scanlines(library, &to, 1);
        if (inks) mix_inks(row, r->inks, w);
    }
    jpeg_finish_decompress(library);
}

clef_status image_jpeg_decode(image *out, str bytes, const image_options *options,
                              clef_error *err) {
    TRY(check_scans(bytes, options, err));
    reader r = {.options = options, .err = err};
    /* Everything that a jump could lose lives behind this pointer. */
    reader *const volatile kept = &r;
    r.library.err = jpeg_std_error(&r.errors);
    r.library.client_data = &r;
    r.errors.error_exit = leave;
    r.errors.emit_message = hear;
    r.errors.output_message = say_nothing;
    if (setjmp(r.exit) == 0) decode(kept, bytes);
    jpeg_destroy_decompress(&kept->library);
    free(kept->inks);
    if (kept->status != CLEF_OK) {
        image_free(&kept->out);
        return kept->status;
    }
    *out = kept->out;
    return CLEF_OK;
}
