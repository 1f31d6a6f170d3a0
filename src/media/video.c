/* video.c - frames of a video file through FFmpeg's libraries; the only file that includes their
 * headers, and only in builds with VIDEO=1.
 *
 * The first video stream counts. Its packets are its frames, so counting needs no decoding; numbers
 * then follow the order of showing, in which the decoder hands frames out. One frame of RGB is held
 * at a time. Colours become RGB by swscale with the settings of PyAV, one of the packages that the
 * reference decodes with, and the matrix and range that the file states. Other settings spread
 * halved chroma otherwise, which is a hundred levels at a hard edge; frames given as pictures have
 * no such doubt.
 *
 * The bytes are read from memory alone: no protocol is opened, so a playlist cannot reach out.
 * FFmpeg would write to stderr, which a library may not: it is told to be quiet, for the whole
 * process. */
#include "media/video.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
#include <stdlib.h>

enum { CHANNELS = 3, IO_BYTES = 64 * 1024, MAX_VIDEO_FRAMES = 1 << 20, CODEC_PAD = 256 };

typedef struct {
    str bytes;
    size_t at;
} memory_file;

typedef struct {
    memory_file file;
    AVFormatContext *format;
    AVIOContext *io;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    struct SwsContext *scaler;
    image rgb; /* the frame that is handed over */
    int stream;
    const image_options *options;
} reader;

static clef_status broken(const reader *r, const char *what, clef_error *err) {
    return clef_fail(err, CLEF_ERR_INPUT, "%s: a broken video file, or none: %s", r->options->where,
                     what);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int read_memory(void *context, uint8_t *to, int n) {
    memory_file *f = context;
    const size_t left = f->bytes.n - f->at;
    const size_t take = left < (size_t)n ? left : (size_t)n;
    if (take == 0) return AVERROR_EOF;
    memcpy(to, f->bytes.p + f->at, take);
    f->at += take;
    return (int)take;
}

static int64_t seek_memory(void *context, int64_t offset, int whence) {
    memory_file *f = context;
    int64_t to = offset;
    if (whence == AVSEEK_SIZE) return (int64_t)f->bytes.n;
    if (whence == SEEK_CUR) to += (int64_t)f->at;
    if (whence == SEEK_END) to += (int64_t)f->bytes.n;
    if (to < 0 || to > (int64_t)f->bytes.n) return AVERROR(EINVAL);
    f->at = (size_t)to;
    return to;
}

static int open_nothing(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                        AVDictionary **options) {
    (void)format;
    (void)io;
    (void)url;
    (void)flags;
    (void)options;
    return AVERROR(EACCES);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_reader(reader *r) {
    sws_freeContext(r->scaler);
    av_frame_free(&r->frame);
    av_packet_free(&r->packet);
    avcodec_free_context(&r->codec);
    avformat_close_input(&r->format);
    if (r->io != NULL) av_freep(&r->io->buffer);
    avio_context_free(&r->io);
    image_free(&r->rgb);
}

static clef_status open_format(reader *r, clef_error *err) {
    unsigned char *buffer = av_malloc(IO_BYTES);
    if (buffer == NULL) return clef_fail_memory(err);
    r->io = avio_alloc_context(buffer, IO_BYTES, 0, &r->file, read_memory, NULL, seek_memory);
    if (r->io == NULL) {
        av_free(buffer);
        return clef_fail_memory(err);
    }
    r->format = avformat_alloc_context();
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    if (r->format == NULL || r->packet == NULL || r->frame == NULL) return clef_fail_memory(err);
    r->format->pb = r->io;
    r->format->io_open = open_nothing;
    if (avformat_open_input(&r->format, NULL, NULL, NULL) < 0)
        return broken(r, "no known container", err);
    if (avformat_find_stream_info(r->format, NULL) < 0)
        return broken(r, "its streams cannot be told", err);
    r->stream = av_find_best_stream(r->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    return r->stream < 0 ? broken(r, "it has no video stream", err) : CLEF_OK;
}

static clef_status open_reader(reader *r, str bytes, const image_options *options,
                               clef_error *err) {
    av_log_set_level(AV_LOG_QUIET);
    *r = (reader){.file = {.bytes = bytes}, .options = options};
    TRY(open_format(r, err));
    const AVCodecParameters *p = r->format->streams[r->stream]->codecpar;
    if (p->width <= 0 || p->height <= 0) return broken(r, "frames without a size", err);
    const uint64_t pixels = (uint64_t)p->width * (uint64_t)p->height;
    if (pixels > options->max_pixels)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "%s: frames of %d x %d pixels, the limit is %llu in all", options->where,
                         p->width, p->height, (unsigned long long)options->max_pixels);
    r->rgb = (image){.w = (uint32_t)p->width, .h = (uint32_t)p->height};
    return CLEF_OK;
}

static clef_status count_packets(video_facts *out, reader *r, clef_error *err) {
    video_facts facts = {0};
    while (av_read_frame(r->format, r->packet) >= 0) {
        TRY(interrupt_ask(&r->options->stop, err));
        if (r->packet->stream_index == r->stream) facts.n_frames++;
        av_packet_unref(r->packet);
        if (facts.n_frames > MAX_VIDEO_FRAMES)
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: a video of more than %d frames",
                             r->options->where, MAX_VIDEO_FRAMES);
    }
    if (facts.n_frames == 0) return broken(r, "it has no frames", err);
    const AVRational rate = r->format->streams[r->stream]->avg_frame_rate;
    if (rate.num > 0 && rate.den > 0) facts.fps = av_q2d(rate);
    *out = facts;
    return CLEF_OK;
}

clef_status video_look(video_facts *out, str bytes, const image_options *options, clef_error *err) {
    reader r;
    clef_status s = open_reader(&r, bytes, options, err);
    if (s == CLEF_OK) s = count_packets(out, &r, err);
    close_reader(&r);
    return s;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static clef_status open_codec(reader *r, clef_error *err) {
    const AVCodecParameters *p = r->format->streams[r->stream]->codecpar;
    const AVCodec *codec = avcodec_find_decoder(p->codec_id);
    if (codec == NULL)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED, "%s: a video in %s, which is not read here",
                         r->options->where, avcodec_get_name(p->codec_id));
    r->codec = avcodec_alloc_context3(codec);
    r->rgb.rgb = malloc((size_t)r->rgb.w * r->rgb.h * CHANNELS);
    if (r->codec == NULL || r->rgb.rgb == NULL) return clef_fail_memory(err);
    if (avcodec_parameters_to_context(r->codec, p) < 0) return clef_fail_memory(err);
    r->codec->thread_count = 1;
    r->codec->err_recognition = AV_EF_EXPLODE;
    /* Codecs pad: MPEG-4 asks for 192 x 280 to decode 96 x 80. */
    r->codec->max_pixels = ((int64_t)r->rgb.w + CODEC_PAD) * ((int64_t)r->rgb.h + CODEC_PAD);
    return avcodec_open2(r->codec, codec, NULL) < 0 ? broken(r, "its codec does not start", err)
                                                    : CLEF_OK;
}

static clef_status to_rgb(reader *r, clef_error *err) {
    const AVFrame *f = r->frame;
    if (f->width != (int)r->rgb.w || f->height != (int)r->rgb.h)
        return broken(r, "its frames change their size", err);
    const enum AVPixelFormat format = (enum AVPixelFormat)f->format;
    r->scaler =
        sws_getCachedContext(r->scaler, f->width, f->height, format, f->width, f->height,
                             AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_BITEXACT, NULL, NULL, NULL);
    if (r->scaler == NULL) return broken(r, "its pixel format cannot be turned into RGB", err);
    const int matrix = f->colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : (int)f->colorspace;
    sws_setColorspaceDetails(r->scaler, sws_getCoefficients(matrix),
                             f->color_range == AVCOL_RANGE_JPEG,
                             sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    uint8_t *planes[] = {r->rgb.rgb, NULL, NULL, NULL};
    const int strides[] = {(int)r->rgb.w * CHANNELS, 0, 0, 0};
    const int rows = sws_scale(r->scaler, (const uint8_t *const *)f->data, f->linesize, 0,
                               f->height, planes, strides);
    return rows == f->height ? CLEF_OK : broken(r, "a frame cannot be turned into RGB", err);
}

typedef struct {
    const bool *wanted; /* [n] */
    uint32_t n, seen;
    video_visit *visit;
    void *context;
} walk;

/* Hands over what the decoder has ready. */
static clef_status drain(reader *r, walk *w, clef_error *err) {
    while (w->seen < w->n) {
        const int got = avcodec_receive_frame(r->codec, r->frame);
        if (got == AVERROR(EAGAIN) || got == AVERROR_EOF) return CLEF_OK;
        if (got < 0) return broken(r, "a frame cannot be decoded", err);
        if (w->wanted[w->seen]) {
            TRY(to_rgb(r, err));
            TRY(w->visit(w->context, w->seen, &r->rgb, err));
        }
        w->seen++;
        av_frame_unref(r->frame);
    }
    return CLEF_OK;
}

static clef_status decode(reader *r, walk *w, clef_error *err) {
    while (w->seen < w->n && av_read_frame(r->format, r->packet) >= 0) {
        int sent = 0;
        TRY(interrupt_ask(&r->options->stop, err));
        if (r->packet->stream_index == r->stream) sent = avcodec_send_packet(r->codec, r->packet);
        av_packet_unref(r->packet);
        if (sent < 0) return broken(r, "a packet cannot be decoded", err);
        TRY(drain(r, w, err));
    }
    if (w->seen < w->n && avcodec_send_packet(r->codec, NULL) >= 0) TRY(drain(r, w, err));
    while (w->seen < w->n && !w->wanted[w->seen]) w->seen++;
    return w->seen < w->n ? broken(r, "it ends before its last frame", err) : CLEF_OK;
}

clef_status video_decode(str bytes, const bool *wanted, uint32_t n, video_visit *visit,
                         void *context, const image_options *options, clef_error *err) {
    reader r;
    walk w = {.wanted = wanted, .n = n, .visit = visit, .context = context};
    clef_status s = open_reader(&r, bytes, options, err);
    if (s == CLEF_OK) s = open_codec(&r, err);
    if (s == CLEF_OK) s = decode(&r, &w, err);
    close_reader(&r);
    return s;
}
