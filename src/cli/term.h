/* term.h - text and bars for people: what a terminal shows and how wide it is. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include "base/buf.h"

typedef struct {
    unsigned width; /* columns */
    bool colour;
    bool blocks; /* the character set has block elements; else bars are made of '#' */
} term;

/* How to write to `fd` when it is a terminal; 80 columns without colour when it is not. */
term term_of(int fd);

/* Columns that valid UTF-8 text takes: wide East Asian characters and pictures two, combining marks
 * none. */
size_t term_columns(str text);

/* A bar of `columns` columns filled to `share`, 0 to 1; blanks fill the rest. */
void term_add_bar(buf *out, const term *t, double share, unsigned columns);

#endif
