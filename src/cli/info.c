/* info.c - clef info: what a checkpoint folder holds, and whether it would load. */
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"

clef_status command_info(const args *a, clef_error *err) {
    buf hub_cache = {0}, out = {0};
    char *text = NULL;
    int loads = 0;
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    const clef_options options = model_options(a, &hub_cache);
    if (s == CLEF_OK) s = clef_info(&options, a->options[OPTION_JSON].given, &text, &loads, err);
    if (s == CLEF_OK) {
        buf_add_text(&out, text);
        if (out.n == 0 || out.p[out.n - 1] != '\n') buf_add_char(&out, '\n');
        s = buf_status(&out, err);
    }
    if (s == CLEF_OK) s = io_write(NULL, (str){out.p, out.n}, err);
    if (s == CLEF_OK && !loads)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s would not load", a->options[OPTION_MODEL].text);
    clef_text_free(text);
    buf_free(&out);
    buf_free(&hub_cache);
    return s;
}
