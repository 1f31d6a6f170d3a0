/* media.c - one picture or video of a request, from its bytes to the pixels that the tower reads.
 *
 * A picture is decoded, brought to a fixed grid where one is asked for (Pillow's resizing, as the
 * caller of the reference would do it), then to the sides that the reference chooses. A video is a
 * list of pictures or a file: frames are chosen first, and one of those is held at a time. Frames
 * become RGB as pictures do; the reference leaves that to its caller and wants three channels. */
#include "media/media.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "media/image.h"
#include "media/resize.h"
#include "media/sample.h"
#include "media/source.h"
#include "media/video.h"

enum { CHANNELS = 3, SIDE_256 = 256, SIDE_448 = 448 };
static const uint64_t DEFAULT_MAX_BYTES = 64u << 20;
static const media_kwargs NO_KWARGS = {0};

/* "images[2]", "videos[0]", "videos[0][7]". */
typedef struct {
    char text[48];
} place;

static place place_of(const media_ref *ref) {
    place p;
    snprintf(p.text, sizeof p.text, "%s[%u]", ref->video ? "videos" : "images", ref->index);
    return p;
}

static place place_of_frame(const media_ref *ref, uint32_t frame) {
    place p;
    snprintf(p.text, sizeof p.text, "videos[%u][%u]", ref->index, frame);
    return p;
}

static clef_status read_source(str *out, buf *storage, const media_ref *ref, const media_options *o,
                               const char *where, clef_error *err) {
    const uint64_t max_bytes = o->max_bytes > 0 ? o->max_bytes : DEFAULT_MAX_BYTES;
    return source_bytes(out, storage, ref, max_bytes > SIZE_MAX ? SIZE_MAX : (size_t)max_bytes,
                        o->allow_paths, where, err);
}

static image_options decoding(const media_options *o, const char *where) {
    return (image_options){
        .max_pixels = o->max_source_pixels > 0 ? o->max_source_pixels : MEDIA_MOST_PIXELS,
        .exif_rotate = o->exif_rotate,
        .where = where,
        .stop = o->stop,
    };
}

static clef_status decode(image *out, const media_ref *ref, const media_options *o,
                          const char *where, clef_error *err) {
    const image_options options = decoding(o, where);
    str bytes = {0};
    buf storage = {0};
    TRY(interrupt_ask(&o->stop, err));
    clef_status s = read_source(&bytes, &storage, ref, o, where, err);
    if (s == CLEF_OK) s = image_decode(out, bytes, &options, err);
    buf_free(&storage);
    return s;
}

/* ---- sides ----------------------------------------------------------------------------------- */

static clef_status check_whole_blocks(uint32_t h, uint32_t w, uint32_t factor, const char *where,
                                      clef_error *err) {
    if (h % factor == 0 && w % factor == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT,
                     "%s: %u x %u pixels with do_resize false, wanted multiples of %u", where, w, h,
                     factor);
}

static clef_status picture_sides(uint32_t *out_h, uint32_t *out_w, const image *i,
                                 const media_options *o, const media_kwargs *kwargs,
                                 const char *where, clef_error *err) {
    const media_rules *r = o->rules;
    const uint32_t factor = r->patch * r->merge;
    if (kwargs->image.keep_size) {
        *out_h = i->h;
        *out_w = i->w;
        TRY(check_whole_blocks(i->h, i->w, factor, where, err));
        if (o->max_pixels == 0 || (uint64_t)i->h * i->w <= o->max_pixels) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "%s: %u x %u pixels with do_resize false, the limit is %llu pixels", where,
                         i->w, i->h, (unsigned long long)o->max_pixels);
    }
    const bool own = kwargs->image.max_pixels > 0;
    uint64_t least = own ? kwargs->image.min_pixels : r->image_min_pixels;
    uint64_t most = own ? kwargs->image.max_pixels : r->image_max_pixels;
    if (o->max_pixels > 0 && o->max_pixels < most) most = o->max_pixels;
    /* A request may not ask for more than its caller allows. Without a caller's bound a least size
     * above the most is the request's own, and read as the reference reads it. */
    if (o->max_pixels > 0 && o->max_pixels < least) least = o->max_pixels;
    return resize_image_sides(out_h, out_w, i->h, i->w, factor, least, most, where, err);
}

static clef_status frame_sides(uint32_t *out_h, uint32_t *out_w, uint32_t n, const image *i,
                               const media_options *o, const media_kwargs *kwargs,
                               const char *where, clef_error *err) {
    const media_rules *r = o->rules;
    const uint32_t factor = r->patch * r->merge;
    if (kwargs->video.keep_size) {
        *out_h = i->h;
        *out_w = i->w;
        return check_whole_blocks(i->h, i->w, factor, where, err);
    }
    const bool own = kwargs->video.max_pixels > 0;
    return resize_video_sides(out_h, out_w, n, i->h, i->w, factor, r->temporal,
                              own ? kwargs->video.min_pixels : r->video_min_pixels,
                              own ? kwargs->video.max_pixels : r->video_max_pixels, o->rounding,
                              where, err);
}

/* ---- bounds of a record ---------------------------------------------------------------------- */

/* Asked as soon as the sides are known: what request members make of a small picture may be more
 * than the memory holds. */
static clef_status check_rows(const media_item *item, const media_options *o, const char *where,
                              clef_error *err) {
    const media_grid *g = &item->grid;
    const uint32_t merge = o->rules->merge;
    const uint64_t rows = (uint64_t)g->t * (g->h / merge) * (g->w / merge);
    if (o->max_rows == 0 || rows + o->rows_before <= o->max_rows) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_LIMIT,
                     "%s: it takes %llu tokens behind %llu of those before it, the limit of a "
                     "record is %llu; smaller or fewer pictures take less",
                     where, (unsigned long long)rows, (unsigned long long)o->rows_before,
                     (unsigned long long)o->max_rows);
}

/* Counts pixels that were decoded, or that will be held resized. The larger number of the two is
 * bounded: many small pictures are no more work than a few large ones, and what request members
 * make of them takes no more memory. */
static clef_status count_pixels(media_item *item, uint64_t n, const media_options *o,
                                const char *where, clef_error *err) {
    if (n > item->n_pixels) item->n_pixels = n;
    const uint64_t all = item->n_pixels + o->pixels_before;
    if (o->max_total_pixels == 0 || all <= o->max_total_pixels) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_LIMIT,
                     "%s: the pictures up to this one have %llu pixels together, the limit is %llu",
                     where, (unsigned long long)all, (unsigned long long)o->max_total_pixels);
}

/* ---- the item -------------------------------------------------------------------------------- */

/* Room for the pixels of an item whose grid and frames are set. */
static uint8_t *take_pixels(const media_item *item, const media_rules *r, arena *mem) {
    size_t frame, all;
    const size_t h = (size_t)item->grid.h * r->patch, w = (size_t)item->grid.w * r->patch;
    if (!size_mul(&frame, h, w * CHANNELS) || !size_mul(&all, frame, item->n_frames)) return NULL;
    return arena_alloc(mem, all, 1);
}

static clef_status finish(media_item *item, const media_rules *r, clef_error *err) {
    const media_grid *g = &item->grid;
    item->n_rows = g->t * (g->h / r->merge) * (g->w / r->merge);
    const size_t bytes = (size_t)item->n_frames * g->h * r->patch * g->w * r->patch * CHANNELS;
    digest *d = NULL;
    TRY(digest_open(&d, err));
    const uint32_t head[] = {item->backend, item->video, g->t, g->h, g->w};
    digest_add(d, head, sizeof head);
    digest_add(d, item->rgb, bytes);
    const clef_status s = digest_finish(d, item->digest, err);
    digest_close(d);
    return s;
}

static clef_status to_fixed_grid(image *i, uint32_t side, clef_error *err) {
    image square = {.w = side, .h = side, .rgb = malloc((size_t)side * side * CHANNELS)};
    if (square.rgb == NULL) return clef_fail_memory(err);
    const clef_status s =
        resize_rgb(square.rgb, side, side, i->rgb, i->h, i->w, RESIZE_PILLOW, err);
    if (s != CLEF_OK) {
        image_free(&square);
        return s;
    }
    image_free(i);
    *i = square;
    return CLEF_OK;
}

static clef_status resize_picture(media_item *item, image *i, const media_options *o,
                                  const char *where, arena *mem, clef_error *err) {
    const media_kwargs *kwargs = o->kwargs == NULL ? &NO_KWARGS : o->kwargs;
    const media_rules *r = o->rules;
    if (o->grid != MEDIA_GRID_NATIVE)
        TRY(to_fixed_grid(i, o->grid == MEDIA_GRID_256 ? SIDE_256 : SIDE_448, err));
    uint32_t h = 0, w = 0;
    TRY(picture_sides(&h, &w, i, o, kwargs, where, err));
    item->grid = (media_grid){1, h / r->patch, w / r->patch};
    item->n_frames = 1;
    TRY(check_rows(item, o, where, err));
    TRY(count_pixels(item, (uint64_t)h * w, o, where, err));
    uint8_t *rgb = take_pixels(item, r, mem);
    if (rgb == NULL) return clef_fail_memory(err);
    item->rgb = rgb;
    const resize_mode mode = o->backend == MEDIA_BACKEND_PIL ? RESIZE_PILLOW : RESIZE_ATEN;
    return resize_rgb(rgb, h, w, i->rgb, i->h, i->w, mode, err);
}

static clef_status load_picture(media_item *item, const media_ref *ref, const media_options *o,
                                arena *mem, clef_error *err) {
    const place where = place_of(ref);
    image i = {0};
    TRY(decode(&i, ref, o, where.text, err));
    clef_status s = count_pixels(item, (uint64_t)i.w * i.h, o, where.text, err);
    if (s == CLEF_OK) s = resize_picture(item, &i, o, where.text, mem, err);
    image_free(&i);
    return s;
}

/* ---- video ----------------------------------------------------------------------------------- */

/* A video on its way: frames of one size come one at a time, in any order. */
typedef struct {
    media_item *item;
    const media_options *options;
    const media_ref *ref;
    sample chosen;
    uint32_t w, h;    /* of the first frame */
    uint64_t decoded; /* pixels */
    uint8_t *rgb;     /* NULL until then */
    arena *mem;
} film;

/* The first frame settles the sides. */
static clef_status begin_film(film *f, const image *i, clef_error *err) {
    const media_kwargs *kwargs = f->options->kwargs == NULL ? &NO_KWARGS : f->options->kwargs;
    const media_rules *r = f->options->rules;
    uint32_t h = 0, w = 0;
    TRY(frame_sides(&h, &w, f->chosen.n, i, f->options, kwargs, place_of(f->ref).text, err));
    f->w = i->w;
    f->h = i->h;
    f->item->grid = (media_grid){f->chosen.n_groups, h / r->patch, w / r->patch};
    TRY(check_rows(f->item, f->options, place_of(f->ref).text, err));
    TRY(count_pixels(f->item, (uint64_t)h * w * f->item->n_frames, f->options,
                     place_of(f->ref).text, err));
    f->rgb = take_pixels(f->item, r, f->mem);
    return f->rgb == NULL ? clef_fail_memory(err) : CLEF_OK;
}

/* Puts a frame, number `number` of those given, in every place that it was chosen for. */
static clef_status add_frame(void *context, uint32_t number, const image *i, clef_error *err) {
    film *f = context;
    f->decoded += (uint64_t)i->w * i->h;
    TRY(count_pixels(f->item, f->decoded, f->options, place_of_frame(f->ref, number).text, err));
    if (f->rgb == NULL) TRY(begin_film(f, i, err));
    if (i->w != f->w || i->h != f->h)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a frame of %u x %u pixels in a video of %u x %u",
                         place_of_frame(f->ref, number).text, i->w, i->h, f->w, f->h);
    const uint32_t patch = f->options->rules->patch;
    const uint32_t h = f->item->grid.h * patch, w = f->item->grid.w * patch;
    const size_t bytes = (size_t)h * w * CHANNELS;
    const uint8_t *first = NULL;
    for (uint32_t k = 0; k < f->chosen.n; k++) {
        if (f->chosen.frames[k] != number) continue;
        uint8_t *to = f->rgb + k * bytes;
        if (first != NULL)
            memcpy(to, first, bytes);
        else
            TRY(resize_rgb(to, h, w, i->rgb, i->h, i->w, RESIZE_ATEN, err));
        first = to;
    }
    return CLEF_OK;
}

/* Which of n frames were chosen, and the number behind the last of them. */
static clef_status mark_frames(bool **out, uint32_t *end, const sample *chosen, uint32_t n,
                               arena *mem, clef_error *err) {
    bool *wanted = arena_alloc(mem, n, sizeof *wanted);
    if (wanted == NULL) return clef_fail_memory(err);
    *end = 0;
    for (uint32_t k = 0; k < chosen->n; k++) {
        wanted[chosen->frames[k]] = true;
        if (chosen->frames[k] >= *end) *end = chosen->frames[k] + 1;
    }
    *out = wanted;
    return CLEF_OK;
}

static clef_status choose_frames(film *f, uint32_t n_given, double fps, clef_error *err) {
    TRY(sample_frames(&f->chosen, n_given, fps, f->ref->index, f->options->rules,
                      f->options->kwargs, place_of(f->ref).text, f->mem, err));
    f->item->seconds = f->chosen.seconds;
    f->item->n_frames = f->chosen.n_groups * f->options->rules->temporal;
    return CLEF_OK;
}

static clef_status load_list(film *f, clef_error *err) {
    bool *wanted = NULL;
    uint32_t end = 0;
    TRY(choose_frames(f, f->ref->n_frames, 0.0, err));
    TRY(mark_frames(&wanted, &end, &f->chosen, f->ref->n_frames, f->mem, err));
    for (uint32_t number = 0; number < end; number++) {
        if (!wanted[number]) continue;
        image i = {0};
        TRY(decode(&i, &f->ref->frames[number], f->options, place_of_frame(f->ref, number).text,
                   err));
        const clef_status s = add_frame(f, number, &i, err);
        image_free(&i);
        TRY(s);
    }
    return CLEF_OK;
}

static clef_status decode_file(film *f, str bytes, clef_error *err) {
    const place where = place_of(f->ref);
    const image_options options = decoding(f->options, where.text);
    video_facts facts = {0};
    bool *wanted = NULL;
    uint32_t end = 0;
    TRY(video_look(&facts, bytes, &options, err));
    TRY(choose_frames(f, facts.n_frames, facts.fps, err));
    TRY(mark_frames(&wanted, &end, &f->chosen, facts.n_frames, f->mem, err));
    return video_decode(bytes, wanted, end, add_frame, f, &options, err);
}

static clef_status load_file(film *f, clef_error *err) {
    str bytes = {0};
    buf storage = {0};
    clef_status s = read_source(&bytes, &storage, f->ref, f->options, place_of(f->ref).text, err);
    if (s == CLEF_OK) s = decode_file(f, bytes, err);
    buf_free(&storage);
    return s;
}

static clef_status load_video(media_item *item, const media_ref *ref, const media_options *o,
                              arena *mem, clef_error *err) {
    film f = {.item = item, .options = o, .ref = ref, .mem = mem};
    TRY(ref->form == MEDIA_FRAMES ? load_list(&f, err) : load_file(&f, err));
    assert(f.rgb != NULL); /* a sample has at least one frame */
    item->rgb = f.rgb;
    const size_t frame_bytes =
        (size_t)item->grid.h * item->grid.w * o->rules->patch * o->rules->patch * CHANNELS;
    for (uint32_t k = f.chosen.n; k < item->n_frames; k++)
        memcpy(f.rgb + k * frame_bytes, f.rgb + (k - 1) * frame_bytes, frame_bytes);
    return CLEF_OK;
}

clef_status media_load(media_item *out, const media_ref *ref, const media_options *options,
                       arena *mem, clef_error *err) {
    media_item item = {.video = ref->video};
    if (ref->video) {
        TRY(load_video(&item, ref, options, mem, err));
    } else {
        item.backend = options->backend;
        TRY(load_picture(&item, ref, options, mem, err));
    }
    TRY(finish(&item, options->rules, err));
    *out = item;
    return CLEF_OK;
}
