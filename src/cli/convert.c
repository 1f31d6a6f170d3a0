/* convert.c - clef convert: a smaller copy of a checkpoint, with a bar while it is made. */
#include <assert.h>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/progress.h"

static_assert(CLEF_FORMAT_INT8MIX == 0 && CLEF_FORMAT_INT8 == 1, "--format int8mix int8");

clef_status command_convert(const args *a, clef_error *err) {
    const option_value *o = a->options;
    buf hub_cache = {0};
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    progress p = progress_begin(true, "MB", 1e6);
    const clef_convert_options options = {.model = o[OPTION_MODEL].text,
                                          .hub_cache = hub_cache.n > 0 ? hub_cache.p : NULL,
                                          .out = o[OPTION_OUT].text,
                                          .format = (clef_format)o[OPTION_FORMAT].choice,
                                          .layers_16bit = o[OPTION_LAYERS_16BIT].text,
                                          .jobs = (unsigned)o[OPTION_JOBS].number,
                                          .progress = progress_step,
                                          .user = &p};
    if (s == CLEF_OK) s = clef_convert(&options, err);
    progress_finish(&p);
    buf_free(&hub_cache);
    return s;
}
