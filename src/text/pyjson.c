/* pyjson.c - writes JSON as CPython 3.11's json.dumps does (MODEL.md section 1).
 *
 * In: the tree of json.c.  Out: text, in one of the two styles the reference uses.
 *
 * Traps:
 *   - what is written is the parsed value, not its spelling: 1E5 is 100000.0, -0 is 0, and an
 *     integer keeps every digit;
 *   - only the quote, the backslash and controls below 0x20 are escaped; DEL, U+2028 and all other
 *     text stand as they are;
 *   - round() looks at the exact binary value: 2.675 is below the tie, so 2 digits give 2.67. */
#include "text/pyjson.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "text/decimal.h"

/* ---- strings ------------------------------------------------------------------------------- */

static void write_escape(buf *out, char c) {
    static const char hex[] = "0123456789abcdef";
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    const unsigned code = (unsigned char)c;
    char letter = c; /* a quote or a backslash is itself */
    if (code < 0x20) letter = letters[code];
    if (letter != 0)
        buf_add(out, (const char[]){'\\', letter}, 2);
    else
        buf_add(out, (const char[]){'\\', 'u', '0', '0', hex[code >> 4], hex[code & 15]}, 6);
}

void pyjson_string(buf *out, str s) {
    buf_add_char(out, '"');
    for (size_t at = 0; at < s.n; at++) {
        const size_t plain = json_plain(s.p + at, s.n - at);
        buf_add(out, s.p + at, plain);
        at += plain;
        if (at < s.n) write_escape(out, s.p[at]);
    }
    buf_add_char(out, '"');
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* A point that stands inside the digits or next to them, by at most 4 zeros in front and up to 16
 * digits behind the first, is written out; else d.ddde+XX. */
void pyjson_double(buf *out, double value) {
    if (isnan(value)) {
        buf_add_str(out, STR("NaN"));
        return;
    }
    if (signbit(value)) buf_add_char(out, '-');
    value = fabs(value);
    if (isinf(value) || value == 0) {
        buf_add_str(out, value == 0 ? STR("0.0") : STR("Infinity"));
        return;
    }
    char digits[DECIMAL_MAX_DIGITS];
    int point;
    const size_t n = decimal_shortest(digits, &point, value);
    if (point < -3 || point > 16) {
        const int exponent = point - 1, size = exponent < 0 ? -exponent : exponent;
        buf_add_char(out, digits[0]);
        if (n > 1) buf_add_char(out, '.');
        buf_add(out, digits + 1, n - 1);
        buf_add_str(out, exponent < 0 ? STR("e-") : STR("e+"));
        if (size >= 100) buf_add_char(out, (char)('0' + size / 100));
        buf_add_char(out, (char)('0' + size / 10 % 10));
        buf_add_char(out, (char)('0' + size % 10));
    } else if (point <= 0) {
        buf_add(out, "0.000", 2 + (size_t)-point);
        buf_add(out, digits, n);
    } else if ((size_t)point < n) {
        buf_add(out, digits, (size_t)point);
        buf_add_char(out, '.');
        buf_add(out, digits + point, n - (size_t)point);
    } else {
        buf_add(out, digits, n);
        buf_add(out, "0000000000000000", (size_t)point - n);
        buf_add_str(out, STR(".0"));
    }
}

void pyjson_number(buf *out, str spelling) {
    bool integer = true;
    for (size_t i = spelling.n > 0 && spelling.p[0] == '-'; i < spelling.n; i++)
        integer = integer && spelling.p[i] >= '0' && spelling.p[i] <= '9';
    const bool negative = spelling.n > 0 && spelling.p[0] == '-';
    if (integer)
        buf_add_str(out, str_equal(spelling, STR("-0")) ? STR("0") : spelling);
    else if (spelling.p[negative] == 'I' || spelling.p[negative] == 'N')
        buf_add_str(out, spelling); /* Infinity, -Infinity, NaN */
    else
        pyjson_double(out, decimal_read(spelling));
}

/* With value = c * 2^q, c * 10^digits fits in 110 bits, so its rounding to a multiple of 2^-q is
 * exact; decimal_read then finds the double nearest to the decimal. */
double pyjson_round(double value, unsigned digits) {
    assert(digits <= 17);
    if (!isfinite(value)) return value;
    int q;
    unsigned __int128 n = (uint64_t)ldexp(frexp(fabs(value), &q), 53);
    q -= 53;
    if (q >= 0) return value; /* an integer */
    for (unsigned i = 0; i < digits; i++) n *= 10;
    if (q <= -112) {
        n = 0; /* n is below a quarter of 2^-q */
    } else {
        const unsigned __int128 half = (unsigned __int128)1 << (-q - 1);
        const unsigned __int128 rest = n & (half + (half - 1));
        n >>= -q;
        if (rest > half || (rest == half && n % 2 == 1)) n++;
    }
    char text[40], *p = text + sizeof text; /* at most 34 digits and "e-17" */
    *--p = (char)('0' + digits % 10);
    *--p = (char)('0' + digits / 10);
    *--p = '-';
    *--p = 'e';
    do {
        *--p = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n != 0);
    return copysign(decimal_read((str){p, (size_t)(text + sizeof text - p)}), value);
}

/* ---- trees --------------------------------------------------------------------------------- */

/* An array or object that is being written. */
typedef struct {
    const json *node;
    const json *next;  /* to be written, in order; NULL when all are */
    size_t place, end; /* or, sorted, the range of places yet to be written */
} frame;

typedef struct {
    buf *out;
    pyjson_style style;
    frame *frames;
    size_t n_frames, cap_frames;
    json_place *places; /* the sorted members of the open objects, one after the other */
    size_t n_places, cap_places;
} writer;

static bool begin_container(writer *w, const json *v) {
    frame *frames = array_grow(w->frames, &w->cap_frames, w->n_frames + 1, sizeof *frames);
    if (frames == NULL) return false;
    w->frames = frames;
    frame *f = &frames[w->n_frames++];
    *f = (frame){.node = v, .next = v->first, .place = w->n_places, .end = w->n_places};
    if (w->style != PYJSON_PROMPT || v->kind != JSON_OBJECT) return true;
    const size_t n = v->n, need = w->n_places + 2 * n; /* the upper half is for sorting */
    json_place *places = array_grow(w->places, &w->cap_places, need, sizeof *places);
    if (places == NULL) return false;
    w->places = places;
    size_t i = 0;
    for (const json *m = v->first; m != NULL; m = m->next, i++)
        places[w->n_places + i] = (json_place){m, i};
    json_sort(places + w->n_places, places + w->n_places + n, n);
    w->n_places += n;
    f->end = w->n_places;
    f->next = NULL;
    return true;
}

/* The value to be written next inside the innermost container, or NULL. */
static const json *next_child(writer *w) {
    frame *f = &w->frames[w->n_frames - 1];
    if (f->place < f->end) return w->places[f->place++].member;
    const json *child = f->next;
    if (child != NULL) f->next = child->next;
    return child;
}

/* Writes a scalar whole, of a container the opening bracket. */
static bool begin_value(writer *w, const json *v) {
    static const char *const words[] = {"null", "false", "true"};
    switch (v->kind) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        buf_add_text(w->out, words[v->kind]);
        return true;
    case JSON_NUMBER:
        pyjson_number(w->out, v->text);
        return true;
    case JSON_STRING:
        pyjson_string(w->out, v->text);
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    buf_add_char(w->out, v->kind == JSON_ARRAY ? '[' : '{');
    return begin_container(w, v);
}

static bool write_tree(writer *w, const json *root) {
    if (!begin_value(w, root)) return false;
    bool first = true; /* in the innermost container */
    while (w->n_frames > 0) {
        const frame *f = &w->frames[w->n_frames - 1];
        const bool object = f->node->kind == JSON_OBJECT;
        const json *child = next_child(w);
        if (child == NULL) {
            buf_add_char(w->out, object ? '}' : ']');
            if (w->style == PYJSON_PROMPT && object) w->n_places -= f->node->n;
            w->n_frames--;
            first = false;
            continue;
        }
        if (!first) buf_add_str(w->out, w->style == PYJSON_PROMPT ? STR(",") : STR(", "));
        if (object) {
            pyjson_string(w->out, child->name);
            buf_add_str(w->out, w->style == PYJSON_PROMPT ? STR(":") : STR(": "));
        }
        const size_t depth = w->n_frames;
        if (!begin_value(w, child)) return false;
        first = w->n_frames > depth;
    }
    return true;
}

clef_status pyjson_write(buf *out, const json *v, pyjson_style style, clef_error *err) {
    writer w = {.out = out, .style = style};
    if (!write_tree(&w, v)) out->failed = true;
    free(w.frames);
    free(w.places);
    return buf_status(out, err);
}
