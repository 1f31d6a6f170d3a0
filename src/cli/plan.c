/* plan.c - clef plan: the figures of clef_plan as a table or as one JSON object. */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"

/* A figure by its name in JSON and in the table, where the indented ones are parts. */
typedef struct {
    const char *name, *label;
    uint64_t bytes;
} figure;

/* Reads "1920x1080"; false when it is nothing of the kind. */
static bool read_size(uint32_t size[2], const char *text) {
    for (int i = 0; i < 2; i++) {
        const char *begin = text;
        uint64_t value = 0;
        for (; *text >= '0' && *text <= '9' && value <= UINT16_MAX; text++)
            value = value * 10 + (uint64_t)(*text - '0');
        if (text == begin || value == 0 || value > UINT16_MAX) return false;
        if (*text++ != (i == 0 ? 'x' : '\0')) return false;
        size[i] = (uint32_t)value;
    }
    return true;
}

/* The pictures of --images into *out, which the caller frees. */
static clef_status read_sizes(uint32_t (**out)[2], const option_value *o, clef_error *err) {
    if (o->n_list == 0) return CLEF_OK;
    uint32_t(*sizes)[2] = calloc(o->n_list, sizeof *sizes);
    if (sizes == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < o->n_list; i++)
        if (!read_size(sizes[i], o->list[i])) {
            free(sizes);
            return clef_fail(err, CLEF_ERR_INPUT,
                             "--images: '%s' is not WIDTHxHEIGHT, 1 to 65535 each", o->list[i]);
        }
    *out = sizes;
    return CLEF_OK;
}

static void add_table(buf *out, const clef_plan_result *r, const figure *figures, size_t n) {
    buf_printf(out, "%u x %u tokens, %u questions, %u options; chunk %u, threads %u\n\n", r->batch,
               r->tokens, r->questions, r->options, r->chunk, r->threads);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%-44s %12.1f MiB\n", figures[i].label,
                   (double)figures[i].bytes / (1024.0 * 1024.0));
    if (r->available_bytes == UINT64_MAX)
        buf_add_text(out, "\nno limit is known\n");
    else
        buf_printf(out, "\n%s leaves %.1f MiB: it %s\n", r->limit,
                   (double)r->available_bytes / (1024.0 * 1024.0),
                   r->total_bytes - r->opened_bytes <= r->available_bytes ? "fits"
                                                                          : "DOES NOT FIT");
}

static void add_json(buf *out, const clef_plan_result *r, const figure *figures, size_t n) {
    buf_printf(out,
               "{\"tokens\":%u,\"batch\":%u,\"questions\":%u,\"options\":%u,\"chunk\":%u,"
               "\"threads\":%u,\"live\":%u",
               r->tokens, r->batch, r->questions, r->options, r->chunk, r->threads, r->live);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, ",\"%s_bytes\":%llu", figures[i].name,
                   (unsigned long long)figures[i].bytes);
    if (r->available_bytes == UINT64_MAX)
        buf_add_text(out, ",\"available_bytes\":null}\n");
    else
        buf_printf(out, ",\"available_bytes\":%llu,\"limit\":\"%s\"}\n",
                   (unsigned long long)r->available_bytes, r->limit);
}

clef_status command_plan(const args *a, clef_error *err) {
    const option_value *o = a->options;
    buf hub_cache = {0}, text = {0};
    clef_plan_result r = {0};
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    clef_options options = model_options(a, &hub_cache);
    options.cache_bytes = o[OPTION_CACHE_BYTES].number;
    clef_plan_options wanted = {.tokens = (uint32_t)o[OPTION_TOKENS].number,
                                .batch = (uint32_t)o[OPTION_BATCH].number,
                                .questions = (uint32_t)o[OPTION_QUESTIONS].number,
                                .options = (uint32_t)o[OPTION_OPTIONS].number,
                                .converted = o[OPTION_FORMAT].given || o[OPTION_TABLES].given,
                                .format = (clef_format)o[OPTION_FORMAT].choice,
                                .tables = (clef_tables)o[OPTION_TABLES].choice};
    uint32_t(*sizes)[2] = NULL;
    if (s == CLEF_OK) s = read_sizes(&sizes, &o[OPTION_IMAGES], err);
    wanted.images = (const uint32_t(*)[2])sizes;
    wanted.n_images = o[OPTION_IMAGES].n_list;
    if (s == CLEF_OK) s = clef_plan(&options, &wanted, &r, err);
    free(sizes);
    if (s == CLEF_OK) {
        const figure figures[] = {
            {"mapped", "mapped weights, shared and given back", r.mapped_bytes},
            {"opened", "open: program, tokenizer, small vectors", r.opened_bytes},
            {"scratch", "open: worker threads", r.scratch_bytes},
            {"workspace", "run: one chunk", r.workspace_bytes},
            {"sequence", "run: keys, values, states of one record", r.sequence_bytes},
            {"head", "run: head of one record", r.head_bytes},
            {"finish", "run: last step of one record", r.finish_bytes},
            {"request", "run: requests", r.request_bytes},
            {"picture", "run: the vision tower and its rows", r.picture_bytes},
            {"prefix", "to keep one record's state", r.prefix_bytes},
            {"cache", "kept states of all requests", r.cache_bytes},
            {"total", "most at once beside the mapped weights", r.total_bytes},
        };
        const size_t n = sizeof figures / sizeof *figures;
        if (o[OPTION_JSON].given)
            add_json(&text, &r, figures, n);
        else
            add_table(&text, &r, figures, n);
        s = buf_status(&text, err);
    }
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    buf_free(&hub_cache);
    return s;
}
