/* help.c - prints the table of commands and options in two forms, so that --help and the manual
 * page cannot disagree. The texts are ASCII. In the manual page a backslash, a minus sign and a dot
 * or an apostrophe at the start of a line mean something to roff and are escaped. */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 78, OPTION_INDENT = 6 };

/* One paragraph of `text`, up to an empty line or the end, in lines of WIDTH; returns its rest. */
static const char *add_paragraph(buf *out, const char *text, size_t indent) {
    size_t column = 0;
    while (*text != '\0' && strncmp(text, "\n\n", 2) != 0) {
        const size_t word = strcspn(text, " \n");
        if (column > 0 && column + 1 + word > WIDTH) {
            buf_add_char(out, '\n');
            column = 0;
        }
        if (column == 0) {
            for (size_t i = 0; i < indent; i++) buf_add_char(out, ' ');
            column = indent;
        } else {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add(out, text, word);
        column += word;
        text += word;
        if (*text == ' ') text++;
    }
    buf_add_char(out, '\n');
    return *text == '\0' ? text : text + 2;
}

static void add_paragraphs(buf *out, const char *text, size_t indent) {
    while (*text != '\0') {
        text = add_paragraph(out, text, indent);
        if (*text != '\0') buf_add_char(out, '\n');
    }
}

/* "--name VALUE" or "--name a|b|c". */
static void add_spelling(buf *out, const option_spec *spec) {
    buf_printf(out, "--%s", spec->name);
    if (spec->value != NULL) buf_printf(out, " %s", spec->value);
    for (size_t i = 0; spec->choices[i] != NULL; i++)
        buf_printf(out, "%s%s", i == 0 ? " " : "|", spec->choices[i]);
}

static void command_text(buf *out, command_id id) {
    const command_spec *c = &command_table[id];
    buf_printf(out, "clef %s - %s\n\nusage: %s\n\n", c->name, c->summary, c->synopsis);
    add_paragraphs(out, c->text, 0);
    buf_add_text(out, "\nOptions:\n");
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(option_table[i].commands & 1u << id)) continue;
        buf_add_text(out, "  ");
        add_spelling(out, &option_table[i]);
        buf_add_char(out, '\n');
        add_paragraphs(out, option_table[i].help, OPTION_INDENT);
    }
    buf_add_text(out, "\nExamples:\n");
    for (size_t i = 0; i < 4; i += 2)
        buf_printf(out, "  %s\n      %s\n", c->examples[i], c->examples[i + 1]);
}

void help_text(buf *out, command_id topic) {
    if (topic != N_COMMANDS) {
        command_text(out, topic);
        return;
    }
    buf_add_text(out, "clef - typed questions about a state, answered by a decision model\n\n"
                      "usage: clef COMMAND [option]\n\nCommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        buf_printf(out, "  %-8s %s\n", command_table[i].name, command_table[i].summary);
    buf_add_text(out, "\n'clef COMMAND --help' explains a command and gives examples; "
                      "'clef --version'\nnames the version.\n");
    for (const help_section *s = help_sections; s->title != NULL; s++) {
        buf_printf(out, "\n%s:\n", s->title);
        add_paragraphs(out, s->text, 2);
    }
}

/* Text for roff, in capitals if asked (section titles). */
static void add_roff(buf *out, const char *text, bool capitals) {
    for (const char *p = text; *p != '\0'; p++) {
        const bool line_start = p == text || p[-1] == '\n';
        if (line_start && (*p == '.' || *p == '\'')) buf_add_text(out, "\\&");
        if (*p == '\\')
            buf_add_text(out, "\\e");
        else if (*p == '-')
            buf_add_text(out, "\\-");
        else if (p[0] == '\n' && p[1] == '\n')
            buf_add_text(out, "\n.PP"); /* the second line feed ends the macro's line */
        else if (capitals)
            buf_add_char(out, (char)toupper((unsigned char)*p));
        else
            buf_add_char(out, *p);
    }
}

void help_man(buf *out) {
    buf_add_text(out, ".TH CLEF 1 \"\" \"clef " CLEF_VERSION "\" \"User Commands\"\n"
                      ".SH NAME\nclef \\- typed questions about a state, answered by a decision "
                      "model\n.SH SYNOPSIS\n.nf\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        add_roff(out, command_table[i].synopsis, false);
        buf_add_char(out, '\n');
    }
    buf_add_text(out, ".fi\n.SH COMMANDS\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        buf_printf(out, ".SS \"clef %s: %s\"\n", command_table[i].name, command_table[i].summary);
        add_roff(out, command_table[i].text, false);
        buf_add_char(out, '\n');
    }
    buf_add_text(out, ".SH OPTIONS\n");
    for (int i = 0; i < N_OPTIONS; i++) {
        buf spelling = {0};
        add_spelling(&spelling, &option_table[i]);
        buf_add_text(out, ".TP\n\\fB");
        if (spelling.p != NULL) add_roff(out, spelling.p, false);
        if (spelling.failed) out->failed = true;
        buf_free(&spelling);
        buf_add_text(out, "\\fR (");
        const char *comma = "";
        for (int c = 0; c < N_COMMANDS; c++) {
            if (!(option_table[i].commands & 1u << c)) continue;
            buf_printf(out, "%s%s", comma, command_table[c].name);
            comma = ", ";
        }
        buf_add_text(out, ")\n");
        add_roff(out, option_table[i].help, false);
        buf_add_char(out, '\n');
    }
    for (const help_section *s = help_sections; s->title != NULL; s++) {
        buf_add_text(out, ".SH ");
        add_roff(out, s->title, true);
        buf_add_char(out, '\n');
        add_roff(out, s->text, false);
        buf_add_char(out, '\n');
    }
    buf_add_text(out, ".SH EXAMPLES\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        for (size_t j = 0; j < 4; j += 2) {
            buf_add_text(out, ".TP\n");
            add_roff(out, command_table[i].examples[j], false);
            buf_add_text(out, "\n.B ");
            add_roff(out, command_table[i].examples[j + 1], false);
            buf_add_char(out, '\n');
        }
    }
}
