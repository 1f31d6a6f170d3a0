/* convert.c - clef convert: a smaller copy of a checkpoint, with a bar while it is made and a line
 * about it at the end. */
#include <assert.h>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/progress.h"

static_assert(CLEF_FORMAT_INT8MIX == 0 && CLEF_FORMAT_INT8 == 1 && CLEF_FORMAT_INT6 == 2 &&
                  CLEF_FORMAT_INT4MIX == 3 && CLEF_FORMAT_INT4 == 4,
              "--format int8mix int8 int6 int4mix int4");
static_assert(CLEF_TABLES_KEEP == 0 && CLEF_TABLES_INT8 == 1, "--tables bf16 int8");

static clef_status tell(const clef_convert_options *o, const clef_convert_result *r,
                        clef_error *err) {
    buf line = {0};
    buf_printf(&line,
               "%s: %.2f GB of %.2f; %llu matrices converted, %.2f bits a weight in %llu linears; "
               "weights are off by %.3g %% of their size, at most by %.3g %% in %s\n",
               o->out, 1e-9 * (double)r->written_bytes, 1e-9 * (double)r->source_bytes,
               (unsigned long long)r->n_converted, r->bits_per_weight,
               (unsigned long long)r->n_linears, 100 * r->relative_error, 100 * r->worst_error,
               r->worst);
    if (o->format == CLEF_FORMAT_INT4)
        buf_add_text(&line, "int4 in all layers changes answers: see what clef gate says of it\n");
    clef_status s = buf_status(&line, err);
    if (s == CLEF_OK) s = io_write(NULL, (str){line.p, line.n}, err);
    buf_free(&line);
    return s;
}

clef_status command_convert(const args *a, clef_error *err) {
    const option_value *o = a->options;
    buf hub_cache = {0};
    clef_convert_result result;
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    progress p = progress_begin(true, "MB", 1e6);
    const clef_convert_options options = {.model = o[OPTION_MODEL].text,
                                          .hub_cache = hub_cache.n > 0 ? hub_cache.p : NULL,
                                          .out = o[OPTION_OUT].text,
                                          .format = (clef_format)o[OPTION_FORMAT].choice,
                                          .layers_16bit = o[OPTION_LAYERS_16BIT].text,
                                          .tables = (clef_tables)o[OPTION_TABLES].choice,
                                          .jobs = (unsigned)o[OPTION_JOBS].number,
                                          .progress = progress_step,
                                          .user = &p};
    if (s == CLEF_OK) s = clef_convert(&options, &result, err);
    progress_finish(&p);
    if (s == CLEF_OK) s = tell(&options, &result, err);
    buf_free(&hub_cache);
    return s;
}
