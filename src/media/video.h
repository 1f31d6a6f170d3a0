/* video.h - frames of a video file. Two files hold it: video.c with FFmpeg's libraries (VIDEO=1),
 * and video_none.c, which refuses. */
#ifndef MEDIA_VIDEO_H
#define MEDIA_VIDEO_H

#include "media/image.h"

typedef struct {
    uint32_t n_frames;
    double fps; /* 0: the file does not tell */
} video_facts;

/* Counts the frames of the file in `bytes` without decoding them. CLEF_ERR_INPUT when it is no
 * video, CLEF_ERR_LIMIT when a frame has more pixels than allowed, CLEF_ERR_UNSUPPORTED in a build
 * without video. */
clef_status video_look(video_facts *out, str bytes, const image_options *options, clef_error *err);

/* Called with one frame of the file, from 0 in the order of showing; `frame` is borrowed for the
 * call. A status other than CLEF_OK ends the decoding. */
typedef clef_status video_visit(void *context, uint32_t number, const image *frame,
                                clef_error *err);

/* Decodes the file and hands over the frames whose flag is set in wanted[n]. CLEF_ERR_INPUT when
 * the file ends before the last of them or is broken; what `visit` returns is passed on. Both ask
 * options->stop between packets. */
clef_status video_decode(str bytes, const bool *wanted, uint32_t n, video_visit *visit,
                         void *context, const image_options *options, clef_error *err);

#endif
