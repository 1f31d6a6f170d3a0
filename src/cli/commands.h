/* commands.h - one call per command; each prints its result and leaves the sentence of a failure to
 * main. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/args.h"

clef_status command_ask(const args *a, clef_error *err);
clef_status command_encode(const args *a, clef_error *err);
clef_status command_info(const args *a, clef_error *err);
clef_status command_bench(const args *a, clef_error *err);
clef_status command_plan(const args *a, clef_error *err);
clef_status command_gate(const args *a, clef_error *err);
clef_status command_convert(const args *a, clef_error *err);
clef_status command_get(const args *a, clef_error *err);
clef_status command_verify(const args *a, clef_error *err);
clef_status command_manifest(const args *a, clef_error *err);
clef_status command_sign(const args *a, clef_error *err);
clef_status command_serve(const args *a, clef_error *err);

#endif
