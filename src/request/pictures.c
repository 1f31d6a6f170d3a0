/* pictures.c - from the members `images`, `videos` and `media_kwargs` to references and settings.
 *
 * A picture is a string (a data URL or base64) or one of the objects that clients of other services
 * send:
 *     {"content_type": "image/png", "base64": "..."}
 *     {"type": "...", "data": "..."}
 *     {"url": "data:..."}
 *     {"type": "image_url", "image_url": {"url": "data:..."}}   or "image_url": "data:..."
 * A video is an array of pictures, its frames, or one such string or object for a whole file. Types
 * and other members are not looked at: the bytes decide.
 *
 * `media_kwargs` are the keyword arguments of the reference's processor. A flat key reaches every
 * kind of media that knows it, `images_kwargs` and `videos_kwargs` one kind; the same key in both
 * places is refused, as the reference does. The reference only warns of unknown keys, and ignores a
 * lone min_pixels or max_pixels; either would be answered from other pixels than were asked for, so
 * both are refused here, as are the keys that change how pixels become numbers. */
#include "request/pictures.h"

#include <math.h>
#include <stdio.h>

#include "request/request.h"

static bool is_null(const json *v) {
    return v == NULL || v->kind == JSON_NULL;
}

/* Absent, null, or an empty array or object: the reference sees nothing in them. */
static bool is_nothing(const json *v) {
    return is_null(v) || ((v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) && v->n == 0);
}

static clef_status wrong(const char *path, const json *v, const char *wanted, clef_error *err) {
    return clef_fail(err, CLEF_ERR_INPUT, "%s: found %s, wanted %s", path, json_kind_name(v),
                     wanted);
}

/* ---- references ------------------------------------------------------------------------------ */

static const char *const PICTURE_WANTED =
    "a data URL, base64, or an object with one of base64, data, url, image_url";

static clef_status read_picture(media_ref *out, const json *v, const char *path, clef_error *err) {
    static const char *const HOLDERS[] = {"base64", "data", "url", "image_url"};
    const json *text = v;
    if (v->kind == JSON_OBJECT) {
        text = NULL;
        for (size_t i = 0; i < sizeof HOLDERS / sizeof HOLDERS[0]; i++) {
            const json *m = json_get(v, str_of(HOLDERS[i]));
            if (is_null(m)) continue;
            if (text != NULL)
                return clef_fail(err, CLEF_ERR_INPUT,
                                 "%s: an object with '%.*s' and '%s', wanted %s", path,
                                 STR_ARG(text->name), HOLDERS[i], PICTURE_WANTED);
            text = m;
        }
        if (text == NULL)
            return clef_fail(err, CLEF_ERR_INPUT, "%s: an object without a picture, wanted %s",
                             path, PICTURE_WANTED);
        if (text->kind == JSON_OBJECT && str_equal(text->name, STR("image_url"))) {
            const json *url = json_get(text, STR("url"));
            text = url == NULL ? text : url;
        }
    }
    if (text->kind != JSON_STRING) return wrong(path, text, PICTURE_WANTED, err);
    out->form = MEDIA_TEXT;
    out->data = text->text;
    return CLEF_OK;
}

static clef_status read_video(media_ref *out, const json *v, const char *path, arena *mem,
                              clef_error *err) {
    if (v->kind != JSON_ARRAY) return read_picture(out, v, path, err);
    if (v->n == 0) return clef_fail(err, CLEF_ERR_INPUT, "%s: a video without frames", path);
    media_ref *frames = arena_alloc(mem, v->n, sizeof *frames);
    if (frames == NULL) return clef_fail_memory(err);
    uint32_t i = 0;
    for (const json *e = v->first; e != NULL; e = e->next, i++) {
        char where[64];
        snprintf(where, sizeof where, "%s[%u]", path, i);
        frames[i].index = i;
        TRY(read_picture(&frames[i], e, where, err));
    }
    out->form = MEDIA_FRAMES;
    out->frames = frames;
    out->n_frames = v->n;
    return CLEF_OK;
}

static clef_status check_list(uint32_t *n, const json **list, const json *root, const char *name,
                              clef_error *err) {
    const json *v = json_get(root, str_of(name));
    *list = NULL;
    *n = 0;
    if (is_nothing(v)) return CLEF_OK;
    if (v->kind != JSON_ARRAY) return wrong(name, v, "an array", err);
    *list = v->first;
    *n = v->n;
    return CLEF_OK;
}

static clef_status read_lists(pictures *p, const json *root, arena *mem, clef_error *err) {
    const json *images = NULL, *videos = NULL;
    TRY(check_list(&p->n_images, &images, root, "images", err));
    TRY(check_list(&p->n_videos, &videos, root, "videos", err));
    media_ref *refs = arena_alloc(mem, (size_t)p->n_images + p->n_videos, sizeof *refs);
    if (refs == NULL) return clef_fail_memory(err);
    p->refs = refs;
    char path[32];
    for (uint32_t i = 0; i < p->n_images; i++, refs++, images = images->next) {
        snprintf(path, sizeof path, "images[%u]", i);
        refs->index = i;
        TRY(read_picture(refs, images, path, err));
    }
    for (uint32_t i = 0; i < p->n_videos; i++, refs++, videos = videos->next) {
        snprintf(path, sizeof path, "videos[%u]", i);
        refs->index = i;
        refs->video = true;
        TRY(read_video(refs, videos, path, mem, err));
    }
    return CLEF_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

static const uint64_t MOST_PIXELS = 1ull << 40; /* further numbers are no sizes */
static const uint64_t MOST_FRAMES = UINT32_MAX;

/* One key in one or both of the places where it may stand: flat and in the kind's own map. */
typedef struct {
    const json *value; /* NULL: absent */
    char path[64];
} setting;

static clef_status find(setting *out, const json *flat, const json *own, const char *own_name,
                        const char *key, clef_error *err) {
    const json *a = json_get(flat, str_of(key)), *b = json_get(own, str_of(key));
    if (a != NULL && b != NULL)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "media_kwargs.%s: also stands in %s, wanted it in one place", key,
                         own_name);
    *out = (setting){.value = b == NULL ? a : b};
    snprintf(out->path, sizeof out->path, "media_kwargs.%s%s%s", b == NULL ? "" : own_name,
             b == NULL ? "" : ".", key);
    return CLEF_OK;
}

static clef_status read_count(uint64_t *out, const json *v, uint64_t max, const char *path,
                              clef_error *err) {
    uint64_t n = 0;
    if (!json_u64(&n, v, max) || n == 0) return wrong(path, v, "a positive integer", err);
    *out = n;
    return CLEF_OK;
}

static clef_status read_flag(bool *out, const setting *s, bool when, clef_error *err) {
    if (is_null(s->value)) return CLEF_OK;
    if (s->value->kind != JSON_TRUE && s->value->kind != JSON_FALSE)
        return wrong(s->path, s->value, "true or false", err);
    *out = (s->value->kind == JSON_TRUE) == when;
    return CLEF_OK;
}

static clef_status read_rate(double *out, const json *v, const char *path, clef_error *err) {
    double x = 0.0;
    if (!json_double(&x, v) || !isfinite(x) || x <= 0.0)
        return wrong(path, v, "a positive number", err);
    *out = x;
    return CLEF_OK;
}

static clef_status read_size(media_bounds *out, const setting *s, clef_error *err) {
    static const char *const EDGES[] = {"shortest_edge", "longest_edge"};
    if (is_null(s->value)) return CLEF_OK;
    if (s->value->kind != JSON_OBJECT)
        return wrong(s->path, s->value, "an object with shortest_edge and longest_edge", err);
    uint64_t bounds[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s.%s", s->path, EDGES[i]);
        const json *v = json_get(s->value, str_of(EDGES[i]));
        if (v == NULL)
            return clef_fail(err, CLEF_ERR_INPUT, "%s: missing, wanted a positive integer", path);
        TRY(read_count(&bounds[i], v, MOST_PIXELS, path, err));
    }
    if (s->value->n != 2)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: found other members, wanted shortest_edge and longest_edge alone",
                         s->path);
    out->min_pixels = bounds[0];
    out->max_pixels = bounds[1];
    return CLEF_OK;
}

static clef_status read_image_settings(media_bounds *out, const json *flat, const json *own,
                                       clef_error *err) {
    static const char *const MAP = "images_kwargs";
    setting size, least, most, resize;
    TRY(find(&size, flat, own, MAP, "size", err));
    TRY(find(&least, flat, own, MAP, "min_pixels", err));
    TRY(find(&most, flat, own, MAP, "max_pixels", err));
    TRY(find(&resize, flat, own, MAP, "do_resize", err));
    TRY(read_size(out, &size, err));
    if (is_null(least.value) != is_null(most.value))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: stands alone, which the reference ignores; wanted min_pixels and "
                         "max_pixels together",
                         is_null(least.value) ? most.path : least.path);
    if (!is_null(least.value)) {
        TRY(read_count(&out->min_pixels, least.value, MOST_PIXELS, least.path, err));
        TRY(read_count(&out->max_pixels, most.value, MOST_PIXELS, most.path, err));
    }
    return read_flag(&out->keep_size, &resize, false, err);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static clef_status read_indices(media_metadata *out, const json *v, const char *path, arena *mem,
                                clef_error *err) {
    if (v->kind != JSON_ARRAY) return wrong(path, v, "an array of frame numbers", err);
    uint64_t *numbers = arena_alloc(mem, v->n, sizeof *numbers);
    if (numbers == NULL) return clef_fail_memory(err);
    uint32_t i = 0;
    for (const json *e = v->first; e != NULL; e = e->next)
        if (!json_u64(&numbers[i++], e, MOST_FRAMES)) return wrong(path, e, "frame numbers", err);
    out->frames_indices = numbers;
    out->n_indices = v->n;
    return CLEF_OK;
}

/* The members that the reference's record has; it knows four more that change nothing. */
static clef_status read_one_metadata(media_metadata *out, const json *v, const char *path,
                                     arena *mem, clef_error *err) {
    static const char *const UNUSED[] = {"width", "height", "duration", "video_backend"};
    if (v->kind != JSON_OBJECT) return wrong(path, v, "an object", err);
    for (const json *m = v->first; m != NULL; m = m->next) {
        char where[256];
        snprintf(where, sizeof where, "%s.%s", path, request_show(m->name).text);
        if (str_equal(m->name, STR("fps"))) {
            if (!is_null(m)) TRY(read_rate(&out->fps, m, where, err));
        } else if (str_equal(m->name, STR("total_num_frames"))) {
            if (!is_null(m)) TRY(read_count(&out->total_num_frames, m, MOST_FRAMES, where, err));
        } else if (str_equal(m->name, STR("frames_indices"))) {
            if (!is_null(m)) TRY(read_indices(out, m, where, mem, err));
        } else {
            size_t i = 0;
            while (i < sizeof UNUSED / sizeof UNUSED[0] && !str_equal(m->name, str_of(UNUSED[i])))
                i++;
            if (i == sizeof UNUSED / sizeof UNUSED[0])
                return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                                 "%s: unknown, wanted fps, total_num_frames or frames_indices",
                                 where);
        }
    }
    return CLEF_OK;
}

static clef_status read_metadata(media_kwargs *out, const setting *s, uint32_t n_videos, arena *mem,
                                 clef_error *err) {
    const json *v = s->value;
    if (is_null(v)) return CLEF_OK;
    const bool list = v->kind == JSON_ARRAY;
    const uint32_t n = list ? v->n : 1;
    if (n != n_videos)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: for %u videos, found %u of them", s->path, n,
                         n_videos);
    media_metadata *all = arena_alloc(mem, n, sizeof *all);
    if (all == NULL) return clef_fail_memory(err);
    const json *e = list ? v->first : v;
    for (uint32_t i = 0; i < n; i++, e = e->next) {
        char path[96];
        snprintf(path, sizeof path, list ? "%s[%u]" : "%s", s->path, i);
        TRY(read_one_metadata(&all[i], e, path, mem, err));
    }
    out->metadata = all;
    out->n_metadata = n;
    return CLEF_OK;
}

static clef_status read_video_settings(media_kwargs *out, const json *flat, const json *own,
                                       uint32_t n_videos, arena *mem, clef_error *err) {
    static const char *const MAP = "videos_kwargs";
    setting size, resize, fps, frames, sampled, metadata;
    TRY(find(&size, flat, own, MAP, "size", err));
    TRY(find(&resize, flat, own, MAP, "do_resize", err));
    TRY(find(&fps, flat, own, MAP, "fps", err));
    TRY(find(&frames, flat, own, MAP, "num_frames", err));
    TRY(find(&sampled, flat, own, MAP, "do_sample_frames", err));
    TRY(find(&metadata, flat, own, MAP, "video_metadata", err));
    TRY(read_size(&out->video, &size, err));
    TRY(read_flag(&out->video.keep_size, &resize, false, err));
    TRY(read_flag(&out->all_frames, &sampled, false, err));
    if (fps.value != NULL && fps.value->kind == JSON_NULL)
        out->fps_null = true;
    else if (fps.value != NULL)
        TRY(read_rate(&out->fps, fps.value, fps.path, err));
    if (!is_null(frames.value)) {
        uint64_t n = 0;
        TRY(read_count(&n, frames.value, MOST_FRAMES, frames.path, err));
        out->num_frames = (uint32_t)n;
    }
    return read_metadata(out, &metadata, n_videos, mem, err);
}

/* Every key is one that is read above. */
static clef_status check_keys(const json *map, const char *path, bool image, bool video,
                              clef_error *err) {
    static const struct {
        const char *name;
        bool image, video;
    } KEYS[] = {
        {"size", true, true},
        {"do_resize", true, true},
        {"min_pixels", true, false},
        {"max_pixels", true, false},
        {"fps", false, true},
        {"num_frames", false, true},
        {"do_sample_frames", false, true},
        {"video_metadata", false, true},
    };
    const size_t n = sizeof KEYS / sizeof KEYS[0];
    for (const json *m = map == NULL ? NULL : map->first; m != NULL; m = m->next) {
        size_t i = 0;
        while (i < n && !str_equal(m->name, str_of(KEYS[i].name))) i++;
        const bool known = i < n && ((image && KEYS[i].image) || (video && KEYS[i].video));
        const bool nested =
            image && video &&
            (str_equal(m->name, STR("images_kwargs")) || str_equal(m->name, STR("videos_kwargs")));
        if (!known && !nested)
            return clef_fail(err, CLEF_ERR_UNSUPPORTED, "%s.%s: not taken here", path,
                             request_show(m->name).text);
    }
    return CLEF_OK;
}

static clef_status read_map(const json **out, const json *object, const char *name,
                            const char *path, clef_error *err) {
    const json *v = json_get(object, str_of(name));
    *out = NULL;
    if (is_nothing(v)) return CLEF_OK;
    if (v->kind != JSON_OBJECT) return wrong(path, v, "an object", err);
    *out = v;
    return CLEF_OK;
}

static clef_status read_settings(pictures *p, const json *root, arena *mem, clef_error *err) {
    const json *flat = NULL, *image = NULL, *video = NULL;
    TRY(read_map(&flat, root, "media_kwargs", "media_kwargs", err));
    TRY(read_map(&image, flat, "images_kwargs", "media_kwargs.images_kwargs", err));
    TRY(read_map(&video, flat, "videos_kwargs", "media_kwargs.videos_kwargs", err));
    TRY(check_keys(flat, "media_kwargs", true, true, err));
    TRY(check_keys(image, "media_kwargs.images_kwargs", true, false, err));
    TRY(check_keys(video, "media_kwargs.videos_kwargs", false, true, err));
    TRY(read_image_settings(&p->kwargs.image, flat, image, err));
    return read_video_settings(&p->kwargs, flat, video, p->n_videos, mem, err);
}

clef_status pictures_read(pictures *out, const json *root, arena *mem, clef_error *err) {
    pictures p = {0};
    TRY(read_lists(&p, root, mem, err));
    TRY(read_settings(&p, root, mem, err));
    *out = p;
    return CLEF_OK;
}
