/* mediabench.c - times what a picture costs before the tower sees it: decoding, resizing, the
 * digest and the patch rows, on one thread.
 *
 *     build/tools/mediabench FILE... [native|256|448]
 *
 * Medians of REPEATS runs in milliseconds of processor time, so that the load of the machine counts
 * little; the first run is not counted. Patch rows are made TILE at a time, as the tower takes
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "media/image.h"
#include "media/media.h"

enum { REPEATS = 7, TILE = 512 };

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, by_value);
    return values[REPEATS / 2];
}

static void die(const char *text) {
    fprintf(stderr, "mediabench: %s\n", text);
    exit(1);
}

static void measure(const char *path, const media_options *options) {
    buf file = {0};
    clef_error err = {0};
    if (file_read(&file, path, 1u << 30, &err) != CLEF_OK) die(err.text);
    const str bytes = {file.p, file.n};
    const media_ref ref = {.form = MEDIA_BYTES, .data = bytes};
    const image_options how = {.max_pixels = MEDIA_MOST_PIXELS, .where = path};
    double decode[REPEATS], load[REPEATS], rows[REPEATS];
    media_item item = {0};
    for (int k = -1; k < REPEATS; k++) {
        arena mem = {0};
        image i = {0};
        const double t0 = now_ms();
        if (image_decode(&i, bytes, &how, &err) != CLEF_OK) die(err.text);
        image_free(&i);
        const double t1 = now_ms();
        if (media_load(&item, &ref, options, &mem, &err) != CLEF_OK) die(err.text);
        const double t2 = now_ms();
        const media_rules *r = options->rules;
        const uint32_t n = item.grid.t * item.grid.h * item.grid.w;
        const size_t width = (size_t)3 * r->temporal * r->patch * r->patch;
        float *out = malloc(TILE * width * sizeof *out);
        if (out == NULL) die("out of memory");
        const double t3 = now_ms();
        for (uint32_t at = 0; at < n; at += TILE)
            patch_rows(out, &item, r, at, n - at < TILE ? n - at : TILE);
        const double t4 = now_ms();
        free(out);
        arena_free(&mem);
        if (k < 0) continue;
        decode[k] = t1 - t0;
        load[k] = t2 - t1;
        rows[k] = t4 - t3;
    }
    const double d = median(decode), l = median(load), p = median(rows);
    printf(
        "%s: %u x %u patches; decode %.2f, resize and digest %.2f, patch rows %.2f, all %.2f ms\n",
        path, item.grid.h, item.grid.w, d, l - d, p, l + p);
    buf_free(&file);
}

int main(int argc, char **argv) {
    arena mem = {0};
    media_rules rules;
    clef_error err = {0};
    if (media_rules_load(&rules, "/nonexistent", &mem, &err) != CLEF_OK) die(err.text);
    media_options options = {.rules = &rules};
    const char *last = argc > 1 ? argv[argc - 1] : "";
    if (strcmp(last, "256") == 0) options.grid = MEDIA_GRID_256;
    if (strcmp(last, "448") == 0) options.grid = MEDIA_GRID_448;
    const int named = options.grid != MEDIA_GRID_NATIVE || strcmp(last, "native") == 0;
    if (argc - named < 2) die("wanted FILE... [native|256|448]");
    for (int i = 1; i < argc - named; i++) measure(argv[i], &options);
    arena_free(&mem);
    return 0;
}
