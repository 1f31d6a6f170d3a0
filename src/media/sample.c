/* sample.c - frame numbers and timestamps of a video, in the reference's double arithmetic.
 *
 * Frames are taken evenly: number i of n is i * step rounded half to even, with step = (total - 1)
 * / (n - 1) divided first (numpy's linspace; the other order rounds some halves differently), and
 * the last one exactly total - 1. How many: `fps` a second of the source's time, kept between the
 * model's least and most and the frames there are; or `num_frames`, which is not bounded and may
 * repeat frames. A source that does not tell its rate is taken for one of 24 frames a second.
 *
 * A group's time is the mean of its first and its last frame's. With an odd number the last frame
 * stands twice. */
#include "media/sample.h"

#include <math.h>

static const double DEFAULT_FPS = 24.0;
enum { MAX_SAMPLED = 1 << 16 };

/* np.linspace(0, total - 1, n).round() */
static uint64_t frame_number(uint32_t i, uint32_t n, uint64_t total) {
    const double last = (double)(total - 1);
    if (n == 1) return 0;
    if (i == n - 1) return total - 1;
    return (uint64_t)nearbyint(i * (last / (n - 1)));
}

static clef_status count_frames(uint32_t *out, uint64_t total, double source_fps,
                                const media_rules *rules, const media_kwargs *kwargs,
                                const char *where, clef_error *err) {
    if (kwargs->num_frames > 0) {
        if (!kwargs->fps_null)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: num_frames and fps are mutually exclusive: num_frames needs "
                             "\"fps\": null beside it",
                             where);
        if (kwargs->num_frames > MAX_SAMPLED)
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: num_frames %u, the limit is %d", where,
                             kwargs->num_frames, MAX_SAMPLED);
        *out = kwargs->num_frames;
        return CLEF_OK;
    }
    const double fps = kwargs->fps > 0.0 ? kwargs->fps : rules->fps;
    const double asked = trunc((double)total / source_fps * fps);
    const double most = fmin((double)rules->max_frames, (double)total);
    const double n = fmin(fmax(asked, (double)rules->min_frames), most);
    if (n > MAX_SAMPLED)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %.0f frames to take, the limit is %d", where, n,
                         MAX_SAMPLED);
    *out = (uint32_t)n;
    return CLEF_OK;
}

/* Sampling: the numbers count in the source and are the places among the given frames at once. */
static clef_status take_some(uint32_t *frames, uint64_t *numbers, uint32_t n, uint64_t total,
                             uint32_t n_given, const char *where, clef_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = frame_number(i, n, total);
        if (numbers[i] >= n_given)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: total_num_frames is %llu, found %u frames to take number %llu "
                             "from",
                             where, (unsigned long long)total, n_given,
                             (unsigned long long)numbers[i]);
        frames[i] = (uint32_t)numbers[i];
    }
    return CLEF_OK;
}

static clef_status take_all(uint32_t *frames, uint64_t *numbers, uint32_t n,
                            const media_metadata *about, const char *where, clef_error *err) {
    if (about->frames_indices != NULL && about->n_indices != n)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: %u frames and %u frames_indices, wanted as many",
                         where, n, about->n_indices);
    for (uint32_t i = 0; i < n; i++) {
        frames[i] = i;
        numbers[i] = about->frames_indices == NULL ? i : about->frames_indices[i];
    }
    return CLEF_OK;
}

static void stamp(double *seconds, uint32_t n_groups, const uint64_t *numbers, uint32_t n,
                  uint32_t temporal, double fps) {
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t first = g * temporal, last = first + temporal - 1;
        const double begin = (double)numbers[first] / fps;
        const double end = (double)numbers[last < n ? last : n - 1] / fps;
        seconds[g] = (begin + end) / 2;
    }
}

clef_status sample_frames(sample *out, uint32_t n_given, double fps, uint32_t index,
                          const media_rules *rules, const media_kwargs *kwargs, const char *where,
                          arena *mem, clef_error *err) {
    static const media_kwargs NONE = {0};
    static const media_metadata UNKNOWN = {0};
    if (kwargs == NULL) kwargs = &NONE;
    const media_metadata *about = index < kwargs->n_metadata ? &kwargs->metadata[index] : &UNKNOWN;
    const double told = about->fps > 0.0 ? about->fps : fps;
    const double source_fps = told > 0.0 ? told : DEFAULT_FPS;
    const uint64_t total = about->total_num_frames > 0 ? about->total_num_frames : n_given;
    sample s = {.n = n_given};
    if (!kwargs->all_frames) TRY(count_frames(&s.n, total, source_fps, rules, kwargs, where, err));
    if (s.n == 0) return clef_fail(err, CLEF_ERR_INPUT, "%s: a video without frames", where);
    s.n_groups = (s.n - 1) / rules->temporal + 1;
    uint32_t *frames = arena_alloc(mem, s.n, sizeof *frames);
    uint64_t *numbers = arena_alloc(mem, s.n, sizeof *numbers);
    double *seconds = arena_alloc(mem, s.n_groups, sizeof *seconds);
    if (frames == NULL || numbers == NULL || seconds == NULL) return clef_fail_memory(err);
    if (kwargs->all_frames)
        TRY(take_all(frames, numbers, s.n, about, where, err));
    else
        TRY(take_some(frames, numbers, s.n, total, n_given, where, err));
    stamp(seconds, s.n_groups, numbers, s.n, rules->temporal, source_fps);
    s.frames = frames;
    s.seconds = seconds;
    *out = s;
    return CLEF_OK;
}
