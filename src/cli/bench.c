/* bench.c - clef bench: the numbers of clef_bench as a table or as one JSON object, with the
 * machine and its load beside them, without which they mean little. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cli/quote.h"
#include "cli/term.h"

static const char *const part_names[CLEF_N_PARTS] = {
    [CLEF_PART_LINEARS] = "linears", [CLEF_PART_ATTENTION] = "attention",
    [CLEF_PART_DELTA] = "delta",     [CLEF_PART_HEAD] = "head",
    [CLEF_PART_OTHER] = "other",
};

typedef struct {
    buf processor; /* its name; empty where the system does not tell */
    double load[3];
    bool load_known;
} machine;

/* Both come from /proc, whose files have no size to map or to check. Read before the measurement,
 * which is a load itself. */
static void look_at_machine(machine *m) {
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && m->processor.n == 0 && fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        colon[strcspn(colon, "\n")] = '\0';
        buf_add_text(&m->processor, colon[1] == ' ' ? colon + 2 : colon + 1);
    }
    if (f != NULL) fclose(f);
    f = fopen("/proc/loadavg", "re");
    if (f == NULL) return;
    if (fgets(line, sizeof line, f) != NULL) {
        char *at = line;
        int n = 0;
        for (; n < 3; n++) {
            char *end = at;
            m->load[n] = strtod(at, &end);
            if (end == at) break;
            at = end;
        }
        m->load_known = n == 3;
    }
    fclose(f);
}

/* JSON has no word for infinity or for what is no number. */
static void add_json_number(buf *out, const char *before, double value) {
    buf_add_text(out, before);
    if (isfinite(value))
        buf_printf(out, "%.6g", value);
    else
        buf_add_text(out, "null");
}

static void add_json(buf *out, const clef_bench_result *r, const machine *m, const char *model,
                     bool fast) {
    buf_add_text(out, "{\"machine\":");
    quote_json(out, (str){m->processor.p, m->processor.n});
    buf_printf(out, ",\"processors\":%u,\"load_average\":", cpu_count());
    if (m->load_known) {
        add_json_number(out, "[", m->load[0]);
        add_json_number(out, ",", m->load[1]);
        add_json_number(out, ",", m->load[2]);
        buf_add_char(out, ']');
    } else {
        buf_add_text(out, "null");
    }
    buf_add_text(out, ",\"version\":\"" CLEF_VERSION "\",\"model\":");
    quote_json(out, str_of(model));
    buf_printf(out, ",\"precision\":\"%s\"", fast ? "fast" : "exact");
    buf_add_text(out, ",\"kernels\":");
    quote_json(out, str_of(r->kernels));
    buf_printf(out, ",\"threads\":%u,\"repeats\":%u,\"chunk\":%u", r->threads, r->repeats,
               (unsigned)r->chunk);
    add_json_number(out, ",\"ceilings\":{\"fma_gflops\":", r->fma_gflops);
    add_json_number(out, ",\"read_gbps\":", r->read_gbps);
    buf_printf(out, "},\"prefill\":{\"tokens\":%u", (unsigned)r->tokens);
    add_json_number(out, ",\"tokens_per_s\":", r->tokens_per_s);
    add_json_number(out, ",\"seconds\":", r->seconds);
    add_json_number(out, ",\"seconds_min\":", r->seconds_min);
    add_json_number(out, ",\"seconds_max\":", r->seconds_max);
    buf_add_text(out, "},\"parts\":{");
    for (int i = 0; i < CLEF_N_PARTS; i++) {
        buf_printf(out, "%s\"%s\":", i == 0 ? "" : ",", part_names[i]);
        add_json_number(out, "{\"gflops\":", r->parts[i].gflops);
        add_json_number(out, ",\"share\":", r->parts[i].share);
        add_json_number(out, ",\"seconds\":", r->parts[i].seconds);
        buf_add_char(out, '}');
    }
    add_json_number(out, "},\"open\":{\"seconds\":", r->open_s);
    add_json_number(out, "},\"tokenizer\":{\"load_seconds\":", r->tokenizer_load_s);
    add_json_number(out, ",\"mbps\":", r->tokenizer_mbps);
    add_json_number(out, "},\"memory\":{\"beyond_weights_bytes\":", r->resident_bytes);
    buf_add_text(out, "}}\n");
}

static void add_table(buf *out, const clef_bench_result *r, const machine *m, const char *model,
                      bool fast) {
    buf_add_text(out, "machine    ");
    buf_add_safe(out, (str){m->processor.p, m->processor.n});
    buf_printf(out, ", %u processors", cpu_count());
    if (m->load_known)
        buf_printf(out, ", load average %.2f %.2f %.2f", m->load[0], m->load[1], m->load[2]);
    buf_add_text(out, "\nmodel      ");
    buf_add_safe(out, str_of(model));
    buf_printf(out, "\nrun        kernels %s, %s, %u threads, chunk %u, medians of %u\n",
               r->kernels, fast ? "fast" : "exact", r->threads, (unsigned)r->chunk, r->repeats);
    buf_printf(out, "ceilings   %.1f GFLOP/s fused multiply-add, %.1f GB/s memory read\n",
               r->fma_gflops, r->read_gbps);
    buf_printf(out, "prefill    %u tokens in %.3f s (%.3f to %.3f): %.1f tokens/s\n\n",
               (unsigned)r->tokens, r->seconds, r->seconds_min, r->seconds_max, r->tokens_per_s);
    buf_add_text(out, "part         seconds    share   GFLOP/s   of ceiling\n");
    for (int i = 0; i < CLEF_N_PARTS; i++) {
        buf_printf(out, "%-10s %9.4f %7.1f%%", part_names[i], r->parts[i].seconds,
                   100 * r->parts[i].share);
        if (r->parts[i].gflops > 0)
            buf_printf(out, " %9.1f %11.1f%%\n", r->parts[i].gflops,
                       100 * r->parts[i].gflops / r->fma_gflops);
        else
            buf_add_char(out, '\n');
    }
    buf_printf(out, "\nopening    %.3f s, and %.3f s for the tokenizer\n", r->open_s,
               r->tokenizer_load_s);
    buf_printf(out, "tokenizer  %.1f MB/s of English on one thread\n", r->tokenizer_mbps);
    buf_printf(out, "memory     %.1f MiB beyond the mapped weights\n",
               r->resident_bytes / (1024.0 * 1024.0));
}

clef_status command_bench(const args *a, clef_error *err) {
    buf hub_cache = {0}, text = {0};
    machine m = {0};
    clef_bench_result result = {0};
    look_at_machine(&m);
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = buf_status(&m.processor, err);
    const clef_options options = model_options(a, &hub_cache);
    progress p = progress_begin(a->options[OPTION_PROGRESS].given, "tokens", 1);
    const clef_bench_options bench = {.tokens = (uint32_t)a->options[OPTION_TOKENS].number,
                                      .repeats = (unsigned)a->options[OPTION_REPEATS].number,
                                      .progress = progress_step,
                                      .user = &p};
    if (s == CLEF_OK) s = clef_bench(&options, &bench, &result, err);
    progress_finish(&p);
    if (s == CLEF_OK) {
        const bool fast = options.precision == CLEF_PRECISION_FAST;
        if (a->options[OPTION_JSON].given)
            add_json(&text, &result, &m, options.model, fast);
        else
            add_table(&text, &result, &m, options.model, fast);
        s = buf_status(&text, err);
    }
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    buf_free(&m.processor);
    buf_free(&hub_cache);
    return s;
}
