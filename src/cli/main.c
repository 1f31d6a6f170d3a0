/* main.c - the program: reads the command line, runs one command, says in one line what failed and
 * turns it into an exit status. Nothing else in the program prints a failure or exits. */
#include <stdio.h>

#include "base/buf.h"
#include "clef.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/stop.h"

enum { EXIT_OURS = 1, EXIT_THEIRS = 2, EXIT_SIGNAL = 128 };

static clef_status print_help(const args *a, clef_error *err) {
    buf text = {0};
    if (a->options[OPTION_MAN].given)
        help_man(&text);
    else
        help_text(&text, a->topic);
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

static clef_status print_version(clef_error *err) {
    buf text = {0};
    buf_printf(&text, "clef %s\n", clef_version());
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

static clef_status run(const args *a, clef_error *err) {
    switch (a->command) {
    case COMMAND_ASK:
        return command_ask(a, err);
    case COMMAND_ENCODE:
        return command_encode(a, err);
    case COMMAND_INFO:
        return command_info(a, err);
    case COMMAND_BENCH:
        return command_bench(a, err);
    case COMMAND_PLAN:
        return command_plan(a, err);
    case COMMAND_GATE:
        return command_gate(a, err);
    case COMMAND_CONVERT:
        return command_convert(a, err);
    case COMMAND_GET:
        return command_get(a, err);
    case COMMAND_VERIFY:
        return command_verify(a, err);
    case COMMAND_MANIFEST:
        return command_manifest(a, err);
    case COMMAND_SIGN:
        return command_sign(a, err);
    case COMMAND_SERVE:
        return command_serve(a, err);
    case COMMAND_HELP:
        return print_help(a, err);
    case COMMAND_VERSION:
        return print_version(err);
    }
    return CLEF_OK;
}

static int exit_status(clef_status status) {
    switch (status) {
    case CLEF_OK:
        return 0;
    case CLEF_ERR_INPUT:
    case CLEF_ERR_LIMIT:
    case CLEF_ERR_FORMAT:
    case CLEF_ERR_IO:
    case CLEF_ERR_UNSUPPORTED:
        return EXIT_THEIRS;
    case CLEF_ERR_CANCELLED:
        return EXIT_SIGNAL + stop_signal();
    case CLEF_ERR_MEMORY:
    case CLEF_ERR_INTERNAL:
    case CLEF_ERR_BUSY:
    case CLEF_ERR_DEADLINE:
        break;
    }
    return EXIT_OURS;
}

int main(int argc, char **argv) {
    io_guard_standard();
    stop_watch();
    args a;
    clef_error err = {0};
    clef_status s = args_parse(&a, argc, argv, &err);
    if (s == CLEF_OK) s = run(&a, &err);
    if (s == CLEF_ERR_IO) model_add_advice(&a, &err);
    if (s != CLEF_OK) fprintf(stderr, "clef: %s\n", err.text);
    return exit_status(s);
}
