/* pyjson.h - writes JSON as CPython's json.dumps does, number spelling included. */
#ifndef TEXT_PYJSON_H
#define TEXT_PYJSON_H

#include "base/buf.h"
#include "text/json.h"

typedef enum {
    PYJSON_PROMPT, /* sort_keys=True, separators=(",", ":"), ensure_ascii=False */
    PYJSON_ANSWER  /* default separators ", " and ": ", order kept, ensure_ascii=False */
} pyjson_style;

/* Appends `v`. Members are sorted by code point at every level in the prompt style. No recursion.
 * Fails only for want of memory. */
clef_status pyjson_write(buf *out, const json *v, pyjson_style style, clef_error *err);

/* Appends a quoted, escaped string. `s` is valid UTF-8. */
void pyjson_string(buf *out, str s);

/* Appends repr(value): the fewest digits that read back, as Python spells them. */
void pyjson_double(buf *out, double value);

/* Appends a number as Python prints what it parsed from `spelling` (JSON_NUMBER text): integers of
 * any size digit for digit ("-0" is "0"), everything else as pyjson_double. */
void pyjson_number(buf *out, str spelling);

/* round(value, digits) as CPython computes it: the exact binary value, correctly rounded, ties to
 * even. 0 <= digits <= 17; a value that is not finite comes back as it is. */
double pyjson_round(double value, unsigned digits);

#endif
