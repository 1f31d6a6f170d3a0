/* media.h - pictures and video frames, from the bytes of a request to rows of patches.
 *
 * A media_ref says where a picture comes from, a media_item is what the tower and the prompt work
 * with: pixels resized to whole patches, the grid, the number of tokens. MODEL.md, "Pictures and
 * video". */
#ifndef MEDIA_MEDIA_H
#define MEDIA_MEDIA_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/interrupt.h"
#include "base/str.h"

/* Pillow refuses larger pictures as bombs; nothing here is resized to more either, all frames of a
 * video counted. */
#define MEDIA_MOST_PIXELS 178956970u

/* ---- what a request names ------------------------------------------------------------------- */

typedef enum {
    MEDIA_TEXT,  /* a data URL, base64 text, or a URL that will be refused */
    MEDIA_BYTES, /* the bytes of a file */
    MEDIA_PATH,  /* a file to read, from the command line only */
    MEDIA_FRAMES /* a video as a list of pictures */
} media_form;

typedef struct media_ref media_ref;
struct media_ref {
    media_form form;
    bool video;
    uint32_t index;          /* in its own list: names "images[2]" or "videos[0]" in errors */
    str data;                /* text, bytes or path; not used by MEDIA_FRAMES */
    const media_ref *frames; /* MEDIA_FRAMES: [n_frames], index counts inside the video */
    uint32_t n_frames;
};

/* What `video_metadata` tells about one video; a member left out is 0 or NULL. */
typedef struct {
    double fps;                     /* 0: not told, which counts as 24 */
    uint64_t total_num_frames;      /* 0: as many as there are */
    const uint64_t *frames_indices; /* [n_indices]: the frames' numbers in the source */
    uint32_t n_indices;
} media_metadata;

/* Bounds and resizing that a request asks for one kind of media. */
typedef struct {
    uint64_t min_pixels, max_pixels; /* both 0: the model's */
    bool keep_size;                  /* do_resize: false */
} media_bounds;

/* `media_kwargs` of a request; {0} when it has none. */
typedef struct {
    media_bounds image, video;
    double fps;                     /* frames to take a second; 0: the model's */
    bool fps_null;                  /* fps: null, which num_frames needs beside it */
    uint32_t num_frames;            /* 0: by fps */
    bool all_frames;                /* do_sample_frames: false */
    const media_metadata *metadata; /* [n_metadata], one for each video; or NULL */
    uint32_t n_metadata;
} media_kwargs;

/* ---- what the model wants ------------------------------------------------------------------- */

typedef struct {
    uint32_t patch, temporal, merge; /* 16, 2, 2 */
    uint64_t image_min_pixels, image_max_pixels;
    uint64_t video_min_pixels, video_max_pixels; /* over all frames of a video */
    double fps;
    uint32_t min_frames, max_frames;
    float mean[3], std[3];
} media_rules;

/* Reads processor_config.json of folder `dir` (image_processor, video_processor), or
 * preprocessor_config.json and video_preprocessor_config.json where there is none; what they leave
 * out, and a folder without any of them, takes the published values. CLEF_ERR_FORMAT names file and
 * member when a value cannot be computed with. `dir` NULL: the published values. */
clef_status media_rules_load(media_rules *out, const char *dir, arena *mem, clef_error *err);

/* ---- how the caller wants it ---------------------------------------------------------------- */

typedef enum { MEDIA_GRID_NATIVE = 0, MEDIA_GRID_256, MEDIA_GRID_448 } media_grid_choice;
typedef enum { MEDIA_ROUND_CEIL = 0, MEDIA_ROUND_EVEN } media_video_rounding; /* 5.10.2; later */

typedef enum {
    MEDIA_BACKEND_TORCHVISION = 0, /* ATen's resizing, normalised in one step: the default there */
    MEDIA_BACKEND_PIL              /* Pillow's, normalised in two; pictures only */
} media_backend;

/* All zero but `rules` is the default. */
typedef struct {
    const media_rules *rules;
    const media_kwargs *kwargs; /* NULL: none */
    media_grid_choice grid;     /* pictures only */
    media_backend backend;      /* which of the reference's two to equal */
    uint64_t max_pixels;        /* lowers the bound that pictures are resized to; 0: the model's */
    bool exif_rotate;           /* turn as the file says; the reference does not */
    bool allow_paths;           /* MEDIA_PATH and file: URLs */
    media_video_rounding rounding;
    uint64_t max_bytes;         /* of one encoded picture; 0: 64 MiB */
    uint64_t max_source_pixels; /* of one decoded picture; 0: MEDIA_MOST_PIXELS */
    /* Of pictures and frames that are held together, of which what media_load gave for those before
     * this one is known: tokens, and pixels, decoded or resized. 0: no bound. */
    uint64_t max_rows, rows_before;
    uint64_t max_total_pixels, pixels_before;
    interrupt stop; /* asked between pictures and frames, and every few rows while one is decoded,
                     * but for WebP */
} media_options;

/* ---- the result ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t t, h, w; /* temporal groups, patch rows, patch columns */
} media_grid;

typedef struct {
    bool video;
    media_backend backend; /* how patch_rows normalises */
    media_grid grid;
    uint32_t n_frames;       /* picture: 1, repeated in time by patch_rows; video: t * temporal, the
                              * last frame repeated where the count is odd */
    const uint8_t *rgb;      /* [n_frames, h * patch, w * patch, 3]: the reference's uint8 pixels */
    const double *seconds;   /* video: [t] time of each group; picture: NULL */
    uint32_t n_rows;         /* tokens: t * h * w / merge^2 */
    uint64_t n_pixels;       /* decoded, in a video of all frames that were taken, or resized, where
                              * that is more */
    char digest[DIGEST_HEX]; /* SHA-256 over backend, grid and rgb: equal ones give equal tower rows
                              */
} media_item;

/* Bytes to pixels: reads, decodes, converts to RGB, samples frames, resizes. Everything *out points
 * to lives in `mem`; what decoding needs is given back before the return. Errors begin with the
 * picture's place ("images[2]: ...", "videos[0][7]: ..."):
 *   CLEF_ERR_INPUT        no picture, a broken one, sides further apart than 200 to 1
 *   CLEF_ERR_LIMIT        more bytes, pixels or scans than allowed, told from the header; more
 *                         tokens, told before anything is resized; more pixels together
 *   CLEF_ERR_UNSUPPORTED  a format or a source that is not read here
 *   CLEF_ERR_IO           a path that cannot be read
 *   CLEF_ERR_MEMORY
 * and what options->stop answers. */
clef_status media_load(media_item *out, const media_ref *ref, const media_options *options,
                       arena *mem, clef_error *err);

/* Writes patch rows first .. first + n - 1 of the item to out[n, 3 * temporal * patch * patch], in
 * merge-block order, normalised as the reference does in f32. */
void patch_rows(float *out, const media_item *item, const media_rules *rules, uint32_t first,
                uint32_t n);

#endif
