/* ask.c - clef ask: one request in, one answer out, as JSON or as bars for people.
 *
 * Ids of questions and options come from the request and may hold anything: on a terminal they are
 * written through buf_add_safe. */
#include <unistd.h>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/term.h"

static const char bold[] = "\x1b[1m", green[] = "\x1b[32m", normal[] = "\x1b[0m";

static str question_of(const clef_option *o) {
    return (str){o->question, o->question_len};
}

static size_t label_columns(const clef_option *o) {
    buf label = {0};
    buf_add_safe(&label, (str){o->option, o->option_len});
    const size_t columns = term_columns((str){label.p, label.n});
    buf_free(&label);
    return columns;
}

/* The options of one question, a line each; a label too long for its column has a line alone. */
static void add_question(buf *out, const term *t, const clef_option *options, size_t n,
                         size_t label_width, int digits) {
    /* Blanks before, between and after, the "0." and one column to spare: a full line would wrap.
     */
    const unsigned bar_width = t->width - (unsigned)label_width - (unsigned)digits - 9;
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (options[i].probability > options[best].probability) best = i;

    if (t->colour) buf_add_text(out, bold);
    buf_add_safe(out, question_of(options));
    if (t->colour) buf_add_text(out, normal);
    buf_add_char(out, '\n');
    for (size_t i = 0; i < n; i++) {
        const bool mark = t->colour && i == best;
        size_t used = label_columns(&options[i]);
        buf_add_text(out, "  ");
        if (mark) buf_add_text(out, green);
        buf_add_safe(out, (str){options[i].option, options[i].option_len});
        if (used > label_width) {
            buf_add_text(out, "\n  ");
            used = 0;
        }
        for (; used < label_width; used++) buf_add_char(out, ' ');
        buf_add_text(out, "  ");
        term_add_bar(out, t, (double)options[i].probability, bar_width);
        buf_printf(out, "  %.*f", digits, (double)options[i].probability);
        if (mark) buf_add_text(out, normal);
        buf_add_char(out, '\n');
    }
}

static void add_pretty(buf *out, const term *t, const clef_answer *answer, int digits) {
    size_t n = 0;
    const clef_option *options = clef_answer_options(answer, &n);
    size_t label_width = 0;
    const size_t most = t->width / 3;
    for (size_t i = 0; i < n; i++) {
        const size_t columns = label_columns(&options[i]);
        if (columns > label_width) label_width = columns > most ? most : columns;
    }
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = begin + 1;
        while (end < n && str_equal(question_of(&options[begin]), question_of(&options[end])))
            end++;
        if (begin > 0) buf_add_char(out, '\n');
        add_question(out, t, options + begin, end - begin, label_width, digits);
    }
}

static clef_status print_logits(const clef_answer *answer, clef_error *err) {
    size_t n = 0;
    const clef_option *options = clef_answer_options(answer, &n);
    buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_add_safe(&text, question_of(&options[i]));
        buf_add_char(&text, '\t');
        buf_add_safe(&text, (str){options[i].option, options[i].option_len});
        buf_printf(&text, "\t%.9g\n", (double)options[i].logit);
    }
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = io_write_error((str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

static clef_status print_answer(const args *a, const clef_answer *answer, clef_error *err) {
    const char *out_path = a->options[OPTION_OUT].text;
    buf text = {0};
    if (a->options[OPTION_PRETTY].given) {
        const term t = out_path == NULL ? term_of(STDOUT_FILENO) : term_of(-1);
        add_pretty(&text, &t, answer, a->options[OPTION_DIGITS].choice == 1 ? 7 : 4);
    } else {
        size_t n = 0;
        const char *json = clef_answer_json(answer, &n);
        buf_add(&text, json, n);
        buf_add_char(&text, '\n');
    }
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = io_write(out_path, (str){text.p, text.n}, err);
    if (s == CLEF_OK && a->options[OPTION_LOGITS].given) s = print_logits(answer, err);
    buf_free(&text);
    return s;
}

clef_status command_ask(const args *a, clef_error *err) {
    buf hub_cache = {0}, body = {0};
    clef_engine *engine = NULL;
    clef_answer *answer = NULL;
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = io_check_out(a->options[OPTION_OUT].text, err);
    if (s == CLEF_OK) s = io_read_request(&body, a->options[OPTION_REQUEST].text, err);
    const clef_options options = model_options(a, &hub_cache);
    if (s == CLEF_OK) s = clef_open(&engine, &options, err);
    if (s == CLEF_OK) s = stop_status(err);
    if (s == CLEF_OK) {
        progress p = progress_begin(a->options[OPTION_PROGRESS].given, "tokens", 1);
        clef_ask_options ask = model_ask_options(a);
        ask.progress = progress_step;
        ask.user = &p;
        s = clef_ask(engine, &ask, body.p, body.n, &answer, err);
        progress_finish(&p);
    }
    if (s == CLEF_OK) s = print_answer(a, answer, err);
    clef_answer_free(answer);
    clef_close(engine);
    buf_free(&body);
    buf_free(&hub_cache);
    return s;
}
