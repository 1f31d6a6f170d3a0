/* visionbench.c - the vision tower of a checkpoint on pictures of given sizes: seconds, the
 * linears' share of this machine's ceiling, and the memory it takes.
 *
 * The pixels are random: no decoder runs. The ceiling (fused multiply-adds from registers on the
 * same threads) is measured right before and right after each run, because the clock rate drifts
 * and other work comes and goes; the share is that of the linears' own time. Memory is what this
 * process holds beyond the mapped files at the end of a run, less what it held before.
 *
 * Usage: visionbench MODEL [threads [WIDTHxHEIGHT...]]; by default 448x448, 1024x1024, 1920x1088.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "model/vision.h"

static void fail(const char *what) {
    fprintf(stderr, "visionbench: %s\n", what);
    exit(1);
}

/* Patch values between -1 and 1 that depend on nothing but their place. */
static void random_patches(void *context, float *out, uint32_t first, uint32_t n) {
    (void)context;
    for (size_t i = 0; i < (size_t)n * VISION_PATCH_VALUES; i++) {
        const uint64_t at = (size_t)first * VISION_PATCH_VALUES + i;
        out[i] = (float)((at * 0x9E3779B97F4A7C15u >> 40) & 255) / 127.5f - 1.0f;
    }
}

static void measure(clef_engine *e, uint32_t width, uint32_t height) {
    const double mib = 1024.0 * 1024.0;
    const vision_input in = {.grid = {1, height / VISION_PATCH, width / VISION_PATCH},
                             .patches = random_patches};
    clef_error err = {0};
    const uint64_t before = memory_anonymous();
    float *out = malloc((size_t)vision_rows(in.grid) * e->cfg.hidden * sizeof *out);
    if (out == NULL) fail("out of memory");
    double ceiling = compute_peak_gflops(e->c);
    compute_take_times(e->c);
    const double begin = cpu_seconds();
    vision *v = NULL;
    if (vision_open(&v, &e->m, out, &in, e->chunk, &err) != CLEF_OK) fail(err.text);
    while (vision_step(v)) {
    }
    const double seconds = cpu_seconds() - begin;
    compute_enter(e->c, CLEF_PART_OTHER);
    const compute_times t = compute_take_times(e->c);
    const uint64_t held = memory_anonymous() - before;
    vision_close(v);
    const double after = compute_peak_gflops(e->c);
    ceiling = (ceiling + after) / 2;
    const double linears = 1e-9 * t.flops[CLEF_PART_LINEARS] / t.seconds[CLEF_PART_LINEARS];
    const double attention = 1e-9 * t.flops[CLEF_PART_ATTENTION] / t.seconds[CLEF_PART_ATTENTION];
    printf("%5u x %-5u %6u %8.2f %7.2f %6.1f %5.1f %8.2f %6.1f %5.1f %7.2f %7.1f %8.1f %8.1f\n",
           width, height, vision_rows(in.grid), seconds, t.seconds[CLEF_PART_LINEARS], linears,
           100 * linears / ceiling, t.seconds[CLEF_PART_ATTENTION], attention,
           100 * attention / ceiling, t.seconds[CLEF_PART_OTHER], ceiling,
           (double)(vision_bytes(&e->cfg, in.grid, e->chunk) +
                    (uint64_t)vision_rows(in.grid) * e->cfg.hidden * sizeof *out) /
               mib,
           (double)held / mib);
    fflush(stdout);
    free(out);
}

int main(int argc, char **argv) {
    if (argc < 2) fail("usage: visionbench MODEL [threads [WIDTHxHEIGHT...]]");
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = argv[1],
                                  .threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail(err.text);
    if (e->cfg.vision.depth == 0) fail("the checkpoint has no vision tower");
    printf("%-13s %6s %8s %7s %6s %5s %8s %6s %5s %7s %7s %8s %8s\n", "pixels", "tokens", "seconds",
           "linears", "GF/s", "%", "attend", "GF/s", "%", "other s", "ceiling", "planned", "MiB");
    const char *const usual[] = {"448x448", "1024x1024", "1920x1088"};
    const char *const *sizes = argc > 3 ? (const char *const *)(argv + 3) : usual;
    const int n = argc > 3 ? argc - 3 : 3;
    measure(e, 64, 64); /* brings the weights into memory */
    for (int i = 0; i < n; i++) {
        char *rest = NULL;
        const unsigned long width = strtoul(sizes[i], &rest, 10);
        const unsigned long height = *rest == 'x' ? strtoul(rest + 1, &rest, 10) : 0;
        if (*rest != '\0' || width == 0 || width > 65536 || width % 32 != 0 || height == 0 ||
            height > 65536 || height % 32 != 0)
            fail("a size is WIDTHxHEIGHT, multiples of 32");
        measure(e, (uint32_t)width, (uint32_t)height);
    }
    clef_close(e);
    return 0;
}
