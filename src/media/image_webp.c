/* image_webp.c - WebP through libwebp; the only file that includes its headers.
 *
 * Alpha is dropped, the stored colour kept, as Pillow's conversion does. Of an animation the first
 * frame is taken on its canvas. */
#include "media/image_codec.h"

#include <stdlib.h>
#include <webp/decode.h>
#include <webp/demux.h>

enum { CHANNELS = 3, RIFF_HEAD = 12, CHUNK_HEAD = 8, RGBA = 4 };

static clef_status broken(const image_options *options, const char *what, clef_error *err) {
    return clef_fail(err, CLEF_ERR_INPUT, "%s: a broken WebP file: %s", options->where, what);
}

static const char *reason(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_BITSTREAM_ERROR:
        return "the data is damaged";
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the file ends too early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it uses what libwebp does not know";
    default:
        return "libwebp refuses it";
    }
}

static clef_status decode_still(image *out, str bytes, const image_options *options,
                                clef_error *err) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return clef_fail(err, CLEF_ERR_UNSUPPORTED, "libwebp is of another version");
    const size_t stride = (size_t)out->w * CHANNELS;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->rgb;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * out->h;
    const VP8StatusCode code = WebPDecode((const uint8_t *)bytes.p, bytes.n, &config);
    WebPFreeDecBuffer(&config.output);
    if (code == VP8_STATUS_OK) return CLEF_OK;
    if (code == VP8_STATUS_OUT_OF_MEMORY) return clef_fail_memory(err);
    return broken(options, reason(code), err);
}

/* The first frame on its canvas, from RGBA that the library owns. */
static clef_status decode_first_frame(image *out, str bytes, const image_options *options,
                                      clef_error *err) {
    const WebPData data = {(const uint8_t *)bytes.p, bytes.n};
    WebPAnimDecoderOptions how;
    if (!WebPAnimDecoderOptionsInit(&how))
        return clef_fail(err, CLEF_ERR_UNSUPPORTED, "libwebpdemux is of another version");
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &how);
    uint8_t *canvas = NULL;
    int milliseconds = 0;
    if (decoder == NULL || !WebPAnimDecoderGetNext(decoder, &canvas, &milliseconds)) {
        WebPAnimDecoderDelete(decoder);
        return broken(options, "its first frame cannot be read", err);
    }
    const size_t n = (size_t)out->w * out->h;
    for (size_t i = 0; i < n; i++) memcpy(out->rgb + i * CHANNELS, canvas + i * RGBA, CHANNELS);
    WebPAnimDecoderDelete(decoder);
    return CLEF_OK;
}

clef_status image_webp_decode(image *out, str bytes, const image_options *options,
                              clef_error *err) {
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures((const uint8_t *)bytes.p, bytes.n, &features);
    if (code != VP8_STATUS_OK) return broken(options, reason(code), err);
    image decoded = {0};
    TRY(image_room(&decoded, (uint32_t)features.width, (uint32_t)features.height, options, err));
    const clef_status s = features.has_animation ? decode_first_frame(&decoded, bytes, options, err)
                                                 : decode_still(&decoded, bytes, options, err);
    if (s != CLEF_OK) {
        image_free(&decoded);
        return s;
    }
    *out = decoded;
    return CLEF_OK;
}

str image_webp_exif(str bytes) {
    const str mark = STR("Exif\0\0");
    size_t at = RIFF_HEAD;
    while (at <= bytes.n && bytes.n - at >= CHUNK_HEAD) {
        const unsigned char *chunk = (const unsigned char *)bytes.p + at;
        const size_t length = le32(chunk + 4);
        if (length > bytes.n - at - CHUNK_HEAD) break;
        if (memcmp(chunk, "EXIF", 4) == 0) {
            str tiff = {bytes.p + at + CHUNK_HEAD, length};
            if (tiff.n >= mark.n && memcmp(tiff.p, mark.p, mark.n) == 0)
                tiff = (str){tiff.p + mark.n, tiff.n - mark.n};
            return tiff;
        }
        at += CHUNK_HEAD + length + length % 2;
    }
    return (str){0};
}
