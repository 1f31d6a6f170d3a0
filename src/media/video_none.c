/* video_none.c - what stands in for video.c in a build without video. */
#include "media/video.h"

static clef_status refuse(const image_options *options, clef_error *err) {
    return clef_fail(
        err, CLEF_ERR_UNSUPPORTED,
        "%s: a video file: built without video (make VIDEO=1), wanted a list of frames",
        options->where);
}

clef_status video_look(video_facts *out, str bytes, const image_options *options, clef_error *err) {
    (void)out;
    (void)bytes;
    return refuse(options, err);
}

clef_status video_decode(str bytes, const bool *wanted, uint32_t n, video_visit *visit,
                         void *context, const image_options *options, clef_error *err) {
    (void)bytes;
    (void)wanted;
    (void)n;
    (void)visit;
    (void)context;
    return refuse(options, err);
}
