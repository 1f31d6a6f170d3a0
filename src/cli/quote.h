/* quote.h - text inside of JSON that the commands print. */
#ifndef CLI_QUOTE_H
#define CLI_QUOTE_H

#include "base/buf.h"

/* Appends `text` in quotes, with what JSON forbids inside them escaped. */
void quote_json(buf *out, str text);

#endif
