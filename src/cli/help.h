/* help.h - the words of args.h's tables as text for a terminal and as a manual page. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "base/buf.h"
#include "cli/args.h"

/* The help of one command; with N_COMMANDS, of the whole program. */
void help_text(buf *out, command_id topic);

/* The manual page, in man(7) macros. */
void help_man(buf *out);

#endif
