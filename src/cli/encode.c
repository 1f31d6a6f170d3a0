/* encode.c - clef encode: a request in, its token ids and spans out. */
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/stop.h"

clef_status command_encode(const args *a, clef_error *err) {
    buf hub_cache = {0}, body = {0}, text = {0};
    clef_engine *engine = NULL;
    clef_answer *answer = NULL;
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = io_check_out(a->options[OPTION_OUT].text, err);
    if (s == CLEF_OK) s = io_read_request(&body, a->options[OPTION_REQUEST].text, err);
    clef_options options = model_options(a, &hub_cache);
    options.tokenizer_only = 1;
    if (s == CLEF_OK) s = clef_open(&engine, &options, err);
    if (s == CLEF_OK) s = stop_status(err);
    const clef_ask_options ask = model_ask_options(a);
    if (s == CLEF_OK) s = clef_encode(engine, &ask, body.p, body.n, &answer, err);
    if (s == CLEF_OK) {
        size_t n = 0;
        const char *json = clef_answer_json(answer, &n);
        buf_add(&text, json, n);
        buf_add_char(&text, '\n');
        s = buf_status(&text, err);
    }
    if (s == CLEF_OK) s = io_write(a->options[OPTION_OUT].text, (str){text.p, text.n}, err);
    clef_answer_free(answer);
    clef_close(engine);
    buf_free(&text);
    buf_free(&body);
    buf_free(&hub_cache);
    return s;
}
