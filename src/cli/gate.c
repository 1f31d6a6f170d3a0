/* gate.c - clef gate: recorded runs against a checkpoint, or two checkpoints against each other.
 *
 * The table is printed whatever comes of it; a gate that does not hold is a failure with a sentence
 * of its own. */
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cli/stop.h"

static clef_status write_report(const args *a, const char *report, clef_error *err) {
    const char *path = a->options[OPTION_REPORT].text;
    if (path == NULL) return CLEF_OK;
    buf out = {0};
    buf_add_text(&out, report);
    buf_add_char(&out, '\n');
    clef_status s = buf_status(&out, err);
    if (s == CLEF_OK) s = io_write(path, (str){out.p, out.n}, err);
    buf_free(&out);
    return s;
}

static clef_status run(const args *a, const clef_options *options, clef_engine *engine,
                       clef_engine **other, char **table, char **report, int *holds,
                       clef_error *err) {
    const option_value *o = a->options;
    progress p = progress_begin(o[OPTION_PROGRESS].given, "tokens", 1);
    const clef_gate_options gate = {.margin = o[OPTION_MARGIN].share,
                                    .max_dp = o[OPTION_MAX_DP].share,
                                    .mean_dp = o[OPTION_MEAN_DP].share,
                                    .red = o[OPTION_RED].given,
                                    .images = o[OPTION_IMAGES].text,
                                    .progress = progress_step,
                                    .user = &p};
    clef_status s = CLEF_OK;
    if (o[OPTION_AGAINST].given) {
        clef_options against = *options;
        against.model = o[OPTION_AGAINST].text;
        against.precision = CLEF_PRECISION_EXACT;
        *holds = 1;
        s = clef_open(other, &against, err);
        if (s == CLEF_OK)
            s = clef_compare(engine, *other, &gate, o[OPTION_REQUESTS].list,
                             o[OPTION_REQUESTS].n_list, table, report, err);
    } else {
        s = clef_gate(engine, &gate, o[OPTION_FIXTURES].list, o[OPTION_FIXTURES].n_list, holds,
                      table, report, err);
    }
    progress_finish(&p);
    return s;
}

clef_status command_gate(const args *a, clef_error *err) {
    buf hub_cache = {0};
    clef_engine *engine = NULL, *other = NULL;
    char *table = NULL, *report = NULL;
    int holds = 0;
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = io_check_out(a->options[OPTION_REPORT].text, err);
    const clef_options options = model_options(a, &hub_cache);
    if (s == CLEF_OK) s = clef_open(&engine, &options, err);
    if (s == CLEF_OK) s = stop_status(err);
    if (s == CLEF_OK) s = run(a, &options, engine, &other, &table, &report, &holds, err);
    if (s == CLEF_OK) s = io_write(NULL, str_of(table), err);
    if (s == CLEF_OK) s = write_report(a, report, err);
    if (s == CLEF_OK && !holds)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: the gate refuses it", options.model);
    clef_text_free(table);
    clef_text_free(report);
    clef_close(other);
    clef_close(engine);
    buf_free(&hub_cache);
    return s;
}
