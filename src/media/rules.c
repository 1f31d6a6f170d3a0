/* rules.c - what the model wants of pictures, from the files beside its weights.
 *
 * transformers 5 writes one processor_config.json with members image_processor and video_processor;
 * older folders have preprocessor_config.json and video_preprocessor_config.json, each with the
 * same members at the top. What a file leaves out takes the value that all published Qwen3.5
 * folders share. Despite their names, size.shortest_edge and size.longest_edge bound the number of
 * pixels.
 *
 * Steps that this engine always takes (resize bicubic, divide by 255, normalise) must not be
 * switched off or changed by a file, and both kinds of media must agree on patches and
 * normalisation, because one tower reads both. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "media/media.h"
#include "text/json.h"

enum { MAX_FILE = 1 << 20, BICUBIC = 3, MAX_SIDE = 1024, MAX_FRAMES = 1 << 20 };

static const media_rules PUBLISHED = {
    .patch = 16,
    .temporal = 2,
    .merge = 2,
    .image_min_pixels = 65536,
    .image_max_pixels = 16777216,
    .video_min_pixels = 4096,
    .video_max_pixels = 25165824,
    .fps = 2.0,
    .min_frames = 4,
    .max_frames = 768,
    .mean = {0.5f, 0.5f, 0.5f},
    .std = {0.5f, 0.5f, 0.5f},
};

/* The member, or NULL when it is absent or null. */
static const json *member(const json *object, const char *name) {
    const json *v = json_get(object, str_of(name));
    return v == NULL || v->kind == JSON_NULL ? NULL : v;
}

static clef_status wrong(const char *path, const char *name, const json *v, const char *wanted,
                         clef_error *err) {
    const str found = v->kind == JSON_NUMBER ? v->text : str_of(json_kind_name(v));
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s: found %.*s, wanted %s", path, name,
                     STR_ARG(found), wanted);
}

/* Leaves *out alone when the member is absent. */
static clef_status read_count(uint64_t *out, const json *object, const char *name, uint64_t max,
                              const char *path, clef_error *err) {
    const json *v = member(object, name);
    uint64_t n = 0;
    if (v == NULL) return CLEF_OK;
    if (!json_u64(&n, v, max) || n == 0) return wrong(path, name, v, "a positive integer", err);
    *out = n;
    return CLEF_OK;
}

static clef_status read_small(uint32_t *out, const json *object, const char *name, uint32_t max,
                              const char *path, clef_error *err) {
    uint64_t n = *out;
    TRY(read_count(&n, object, name, max, path, err));
    *out = (uint32_t)n;
    return CLEF_OK;
}

static clef_status read_channels(float out[3], const json *object, const char *name, bool positive,
                                 const char *path, clef_error *err) {
    const json *v = member(object, name);
    if (v == NULL) return CLEF_OK;
    if (v->kind != JSON_ARRAY || v->n != 3) return wrong(path, name, v, "three numbers", err);
    uint32_t i = 0;
    for (const json *e = v->first; e != NULL; e = e->next, i++) {
        double x = 0.0;
        if (!json_double(&x, e) || !isfinite(x) || (positive && x <= 0.0))
            return wrong(path, name, e, positive ? "a positive number" : "a number", err);
        out[i] = (float)x;
    }
    return CLEF_OK;
}

static clef_status check_steps(const json *object, const char *path, clef_error *err) {
    static const char *const STEPS[] = {"do_resize", "do_rescale", "do_normalize",
                                        "do_convert_rgb"};
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        const json *v = member(object, STEPS[i]);
        if (v != NULL && v->kind != JSON_TRUE) return wrong(path, STEPS[i], v, "true", err);
    }
    uint64_t n = 0;
    const json *v = member(object, "resample");
    if (v != NULL && (!json_u64(&n, v, UINT32_MAX) || n != BICUBIC))
        return wrong(path, "resample", v, "3 (bicubic)", err);
    double factor = 0.0;
    v = member(object, "rescale_factor");
    if (v != NULL && (!json_double(&factor, v) || fabs(factor * UINT8_MAX - 1.0) > 1e-9))
        return wrong(path, "rescale_factor", v, "1/255", err);
    return CLEF_OK;
}

/* What both kinds have: reads over the values that are there already. */
static clef_status read_common(media_rules *r, uint64_t *min_pixels, uint64_t *max_pixels,
                               const json *object, const char *path, clef_error *err) {
    if (object->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: found %s, wanted an object", path,
                         json_kind_name(object));
    TRY(check_steps(object, path, err));
    TRY(read_small(&r->patch, object, "patch_size", MAX_SIDE, path, err));
    TRY(read_small(&r->temporal, object, "temporal_patch_size", MAX_SIDE, path, err));
    TRY(read_small(&r->merge, object, "merge_size", MAX_SIDE, path, err));
    TRY(read_channels(r->mean, object, "image_mean", false, path, err));
    TRY(read_channels(r->std, object, "image_std", true, path, err));
    TRY(read_count(min_pixels, object, "min_pixels", UINT32_MAX, path, err));
    TRY(read_count(max_pixels, object, "max_pixels", UINT32_MAX, path, err));
    const json *size = member(object, "size");
    TRY(read_count(min_pixels, size, "shortest_edge", UINT32_MAX, path, err));
    TRY(read_count(max_pixels, size, "longest_edge", UINT32_MAX, path, err));
    if (*min_pixels > *max_pixels)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: size: shortest_edge %llu is above longest_edge %llu", path,
                         (unsigned long long)*min_pixels, (unsigned long long)*max_pixels);
    return CLEF_OK;
}

static clef_status read_image(media_rules *r, const json *object, const char *path,
                              clef_error *err) {
    return read_common(r, &r->image_min_pixels, &r->image_max_pixels, object, path, err);
}

static clef_status read_video(media_rules *r, const json *object, const char *path,
                              clef_error *err) {
    media_rules v = *r;
    TRY(read_common(&v, &v.video_min_pixels, &v.video_max_pixels, object, path, err));
    bool same = v.patch == r->patch && v.temporal == r->temporal && v.merge == r->merge;
    for (int c = 0; c < 3; c++) same = same && v.mean[c] == r->mean[c] && v.std[c] == r->std[c];
    if (!same)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: the video processor has another patch, merge, mean or std than the "
                         "image processor, wanted the same",
                         path);
    const json *fps = member(object, "fps");
    if (fps != NULL && (!json_double(&v.fps, fps) || !isfinite(v.fps) || v.fps <= 0.0))
        return wrong(path, "fps", fps, "a positive number", err);
    TRY(read_small(&v.min_frames, object, "min_frames", MAX_FRAMES, path, err));
    TRY(read_small(&v.max_frames, object, "max_frames", MAX_FRAMES, path, err));
    *r = v;
    return CLEF_OK;
}

/* The parsed file, or NULL in *out when the folder has none of that name. *path goes to `mem`. */
static clef_status parse_file(const json **out, const char **path, const char *dir,
                              const char *name, arena *mem, clef_error *err) {
    char *joined = file_join(dir, name);
    if (joined == NULL) return clef_fail_memory(err);
    const str kept = arena_copy(mem, str_of(joined));
    free(joined);
    if (kept.p == NULL) return clef_fail_memory(err);
    *path = kept.p;
    *out = NULL;
    if (!file_is_named(kept.p)) return CLEF_OK;
    buf text = {0};
    clef_status s = file_read(&text, kept.p, MAX_FILE, err);
    if (s == CLEF_OK)
        s = json_parse(out, (str){text.p, text.n}, kept.p, &(json_limits){0}, mem, err);
    buf_free(&text);
    return s == CLEF_ERR_INPUT ? CLEF_ERR_FORMAT : s;
}

static clef_status read_folder(media_rules *r, const char *dir, arena *mem, clef_error *err) {
    const json *root = NULL;
    const char *path = NULL;
    TRY(parse_file(&root, &path, dir, "processor_config.json", mem, err));
    if (root != NULL) {
        const json *image = member(root, "image_processor"),
                   *video = member(root, "video_processor");
        if (image != NULL) TRY(read_image(r, image, path, err));
        if (video != NULL) TRY(read_video(r, video, path, err));
        if (image != NULL || video != NULL) return CLEF_OK;
    }
    TRY(parse_file(&root, &path, dir, "preprocessor_config.json", mem, err));
    if (root != NULL) TRY(read_image(r, root, path, err));
    TRY(parse_file(&root, &path, dir, "video_preprocessor_config.json", mem, err));
    if (root != NULL) TRY(read_video(r, root, path, err));
    return CLEF_OK;
}

clef_status media_rules_load(media_rules *out, const char *dir, arena *mem, clef_error *err) {
    media_rules r = PUBLISHED;
    if (dir != NULL) TRY(read_folder(&r, dir, mem, err));
    *out = r;
    return CLEF_OK;
}
