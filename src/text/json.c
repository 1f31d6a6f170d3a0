/* json.c - JSON text to a tree of nodes, as CPython's json.loads reads it.
 *
 * The text is copied into the arena once. Strings are unescaped in place there (no escape is
 * shorter than what it stands for), numbers keep their spelling, and the nodes point into the copy:
 * a text of n bytes costs n bytes and 64 for each value.
 *
 * There is no recursion: open arrays and objects stand on a stack of frames, and the children of
 * all of them on one stack of nodes. When a container closes, its children are the top of that
 * stack; they are linked, or, in an object, first rid of repeated names.
 *
 * Repeated names. The last value wins and takes the place of the first. Few names are compared in
 * pairs, many are hashed. The hash has no secret, so a client can choose names that collide; when
 * the probes exceed a budget that is linear in the object's text, the names are sorted instead.
 *
 * Where CPython 3.11 refuses a text, the offset in the error is the one that CPython reports, in
 * bytes (it counts code points). Two rules are ours: lone surrogates are refused, because they
 * cannot be written as UTF-8, and a depth limit replaces its recursion limit. */
#include "text/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"
#include "text/decimal.h"

enum { DEFAULT_MAX_DEPTH = 512, FEW_MEMBERS = 8 };

typedef struct {
    json *node;
    size_t first_child; /* on the stack of children */
} frame;

typedef struct {
    uint64_t hash;
    json *member; /* NULL: a free slot */
} slot;

typedef struct {
    const char *label;
    json_limits limits;
    arena *mem;
    clef_error *err;
    char *text; /* the copy, and in it: */
    size_t n;   /* the end */
    size_t at;  /* the next byte */
    frame *frames;
    size_t n_frames, cap_frames;
    json **children;
    size_t n_children, cap_children;
    slot *slots; /* the table of names, kept from object to object */
    size_t cap_slots;
    json_place *places; /* for sorting, likewise */
    size_t cap_places;
} parser;

/* ---- shared with the writer ---------------------------------------------------------------- */

size_t json_plain(const char *p, size_t n) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    size_t at = 0;
    for (; n - at >= 8; at += 8) {
        uint64_t w;
        memcpy(&w, p + at, sizeof w);
        /* (v - ones) & ~v has the top bit of a byte set where that byte of v is 0. The borrow can
         * also mark bytes above such a one, never below or without it. */
        const uint64_t quote = w ^ ones * '"', backslash = w ^ ones * '\\';
        const uint64_t control = (w - ones * 0x20) & ~w;
        if ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | control) & tops) break;
    }
    while (at < n && p[at] != '"' && p[at] != '\\' && (unsigned char)p[at] >= 0x20) at++;
    return at;
}

/* A merge sort from the bottom up, because the names are chosen by whoever wrote the text: no
 * order of theirs makes it slow. */
void json_sort(json_place *members, json_place *scratch, size_t n) {
    json_place *from = members, *to = scratch;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            const size_t middle = n - begin < width ? n : begin + width;
            const size_t end = n - middle < width ? n : middle + width;
            size_t left = begin, right = middle;
            for (size_t i = begin; i < end; i++) {
                const bool take_left =
                    left < middle && (right == end || str_compare(from[left].member->name,
                                                                  from[right].member->name) <= 0);
                to[i] = take_left ? from[left++] : from[right++];
            }
        }
        json_place *swap = from;
        from = to;
        to = swap;
    }
    if (from != members) memcpy(members, from, n * sizeof *members);
}

/* ---- errors -------------------------------------------------------------------------------- */

/* Room for what describe writes. */
enum { FOUND_BYTES = 32 };

/* What stands at byte `at`, in words that hold none of a hostile text's bytes. */
static const char *describe(char found[FOUND_BYTES], const parser *p, size_t at) {
    uint32_t point = 0;
    if (at >= p->n) return "the end of the text";
    utf8_decode(&point, p->text + at, p->n - at);
    if (point > 0x20 && point < 0x7F)
        snprintf(found, FOUND_BYTES, "'%c'", (char)point);
    else
        snprintf(found, FOUND_BYTES, "U+%04X", point);
    return found;
}

static clef_status fail_at(const parser *p, size_t at, const char *wanted) {
    char found[FOUND_BYTES];
    return clef_fail(p->err, CLEF_ERR_INPUT, "%s: byte %zu: found %s, wanted %s", p->label, at,
                     describe(found, p, at), wanted);
}

/* The text is larger than whoever made the arena allows; that is no want of memory. */
static clef_status fail_ceiling(const char *label, const arena *mem, clef_error *err) {
    return clef_fail(err, CLEF_ERR_LIMIT, "%s: more values than fit into %zu bytes of memory",
                     label, mem->max_bytes);
}

/* ---- repeated names ------------------------------------------------------------------------ */

static clef_status fail_repeated(const parser *p, const json *member) {
    const size_t at = (size_t)(member->name.p - p->text) - 1; /* of the opening quote */
    return clef_fail(p->err, CLEF_ERR_INPUT,
                     "%s: byte %zu: the name '%.*s' stands twice in an object", p->label, at,
                     STR_ARG(member->name));
}

/* Sees to it that `later`, which repeats the name of `first`, is heeded. */
static clef_status merge_repeated(const parser *p, json *first, const json *later) {
    if (p->limits.duplicates == JSON_REFUSE_DUPLICATES) return fail_repeated(p, later);
    *first = *later;
    return CLEF_OK;
}

static clef_status merge_few(const parser *p, json **members, size_t *n) {
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        size_t k = 0;
        while (k < kept && !str_equal(members[k]->name, members[i]->name)) k++;
        if (k == kept)
            members[kept++] = members[i];
        else
            TRY(merge_repeated(p, members[k], members[i]));
    }
    *n = kept;
    return CLEF_OK;
}

static clef_status merge_sorted(parser *p, json **members, size_t *n) {
    json_place *places = array_grow(p->places, &p->cap_places, 2 * *n, sizeof *places);
    if (places == NULL) return clef_fail_memory(p->err);
    p->places = places;
    for (size_t i = 0; i < *n; i++) places[i] = (json_place){members[i], i};
    json_sort(places, places + *n, *n);
    const json *refused = NULL; /* the first member that repeats a name */
    for (size_t begin = 0, end; begin < *n; begin = end) {
        end = begin + 1;
        while (end < *n && str_equal(places[end].member->name, places[begin].member->name)) end++;
        if (end == begin + 1) continue;
        const json *second = places[begin + 1].member;
        if (refused == NULL || second->at < refused->at) refused = second;
        *members[places[begin].place] = *places[end - 1].member;
        for (size_t i = begin + 1; i < end; i++) members[places[i].place] = NULL;
    }
    if (refused != NULL && p->limits.duplicates == JSON_REFUSE_DUPLICATES)
        return fail_repeated(p, refused);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (members[i] != NULL) members[kept++] = members[i];
    *n = kept;
    return CLEF_OK;
}

static uint64_t hash_name(str name) {
    const uint64_t factor = 0x9E3779B97F4A7C15u; /* 2^64 over the golden ratio */
    uint64_t hash = name.n, word;
    size_t at = 0;
    for (; name.n - at >= 8; at += 8) {
        memcpy(&word, name.p + at, 8);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    word = 0;
    if (at < name.n) memcpy(&word, name.p + at, name.n - at);
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 32;
}

/* `text_bytes` is the length of the object's text. */
static clef_status merge_many(parser *p, json **members, size_t *n, size_t text_bytes) {
    size_t n_slots = 32;
    while (n_slots / 2 < *n) n_slots *= 2;
    slot *slots = array_grow(p->slots, &p->cap_slots, n_slots, sizeof *slots);
    if (slots == NULL) return clef_fail_memory(p->err);
    p->slots = slots;
    memset(slots, 0, n_slots * sizeof *slots);
    /* Honest names need 1.5 probes each, and comparing a name with itself costs its length. */
    size_t budget = 16 * *n + 4 * text_bytes;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        const uint64_t hash = hash_name(members[i]->name);
        size_t k = hash & (n_slots - 1), cost = 1;
        bool same = false;
        for (; slots[k].member != NULL; k = (k + 1) & (n_slots - 1), cost++) {
            if (slots[k].hash != hash) continue;
            cost += members[i]->name.n;
            same = str_equal(slots[k].member->name, members[i]->name);
            if (same || cost > budget) break;
        }
        if (cost > budget) {
            while (i < *n) members[kept++] = members[i++];
            *n = kept;
            return merge_sorted(p, members, n);
        }
        budget -= cost;
        if (same) {
            TRY(merge_repeated(p, slots[k].member, members[i]));
            continue;
        }
        slots[k] = (slot){hash, members[i]};
        members[kept++] = members[i];
    }
    *n = kept;
    return CLEF_OK;
}

/* ---- containers ---------------------------------------------------------------------------- */

static clef_status open_container(parser *p, json *node) {
    if (p->n_frames == p->limits.max_depth)
        return clef_fail(p->err, CLEF_ERR_LIMIT, "%s: byte %zu: nested deeper than %u levels",
                         p->label, node->at, p->limits.max_depth);
    frame *frames = array_grow(p->frames, &p->cap_frames, p->n_frames + 1, sizeof *frames);
    if (frames == NULL) return clef_fail_memory(p->err);
    p->frames = frames;
    frames[p->n_frames++] = (frame){node, p->n_children};
    return CLEF_OK;
}

/* The innermost container ends before p->at; *out becomes its node. */
static clef_status close_container(parser *p, json **out) {
    const frame f = p->frames[--p->n_frames];
    /* Nothing has been allocated yet when the first container to end is an empty one. */
    json **children = p->children == NULL ? NULL : p->children + f.first_child;
    size_t n = p->n_children - f.first_child;
    p->n_children = f.first_child;
    if (n > UINT32_MAX)
        return clef_fail(p->err, CLEF_ERR_LIMIT, "%s: byte %zu: more than %u values in one %s",
                         p->label, f.node->at, UINT32_MAX,
                         f.node->kind == JSON_ARRAY ? "array" : "object");
    if (f.node->kind == JSON_OBJECT && n > FEW_MEMBERS)
        TRY(merge_many(p, children, &n, p->at - f.node->at));
    else if (f.node->kind == JSON_OBJECT && n > 1)
        TRY(merge_few(p, children, &n));
    for (size_t i = 0; i + 1 < n; i++) children[i]->next = children[i + 1];
    if (n > 0) {
        children[n - 1]->next = NULL;
        f.node->first = children[0];
    }
    f.node->n = (uint32_t)n;
    *out = f.node;
    return CLEF_OK;
}

static clef_status add_child(parser *p, json *child) {
    const size_t size = sizeof(json *); /* NOLINT(bugprone-sizeof-expression): of pointers */
    json **children = array_grow(p->children, &p->cap_children, p->n_children + 1, size);
    if (children == NULL) return clef_fail_memory(p->err);
    p->children = children;
    children[p->n_children++] = child;
    return CLEF_OK;
}

/* ---- scalars ------------------------------------------------------------------------------- */

/* The copy ends in a zero byte, so looking at one byte past the end is safe. */
static bool digit_at(const parser *p, size_t at) {
    return p->text[at] >= '0' && p->text[at] <= '9';
}

/* The end of the number at p->at, or p->at itself when none stands there. As in CPython the longest
 * prefix that is a number counts: "1." is 1, and the error is what follows. */
static size_t number_end(const parser *p) {
    size_t at = p->at + (p->text[p->at] == '-');
    if (!digit_at(p, at)) return p->at;
    if (p->text[at] == '0')
        at++;
    else
        while (digit_at(p, at)) at++;
    if (p->text[at] == '.' && digit_at(p, at + 1)) {
        at += 2;
        while (digit_at(p, at)) at++;
    }
    if (p->text[at] == 'e' || p->text[at] == 'E') {
        size_t exponent = at + 1;
        if (p->text[exponent] == '-' || p->text[exponent] == '+') exponent++;
        if (digit_at(p, exponent)) {
            while (digit_at(p, exponent)) exponent++;
            at = exponent;
        }
    }
    return at;
}

static bool skip_word(parser *p, str word) {
    if (p->n - p->at < word.n || memcmp(p->text + p->at, word.p, word.n) != 0) return false;
    p->at += word.n;
    return true;
}

/* Four hexadecimal digits at `at`, or -1. CPython wants a byte behind them too: the string cannot
 * end there, and its error then speaks of the escape, not of the string. */
static int32_t hex4(const parser *p, size_t at) {
    if (at > p->n || p->n - at <= 4) return -1;
    int32_t value = 0;
    for (size_t i = at; i < at + 4; i++) {
        const char c = p->text[i];
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static clef_status fail_hex(const parser *p, size_t u_at) {
    return clef_fail(p->err, CLEF_ERR_INPUT,
                     "%s: byte %zu: an escape \\u without four hexadecimal digits", p->label, u_at);
}

/* Reads the escape whose backslash stands at *at and writes its character to p->text + *to; both
 * positions move behind. */
static clef_status unescape_unicode(parser *p, size_t *at, size_t *to) {
    const size_t begin = *at;
    int32_t point = hex4(p, begin + 2);
    if (point < 0) return fail_hex(p, begin + 1);
    *at = begin + 6;
    if (point >= 0xD800 && point <= 0xDBFF && p->text[*at] == '\\' && p->text[*at + 1] == 'u') {
        const int32_t low = hex4(p, *at + 2);
        if (low < 0) return fail_hex(p, *at + 1);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00));
            *at += 6;
        }
    }
    if (point >= 0xD800 && point <= 0xDFFF)
        return clef_fail(p->err, CLEF_ERR_INPUT,
                         "%s: byte %zu: a lone surrogate \\u%04x, wanted a pair", p->label, begin,
                         (unsigned)point);
    *to += utf8_encode(p->text + *to, (uint32_t)point);
    return CLEF_OK;
}

static clef_status unescape(parser *p, size_t *at, size_t *to) {
    char c = p->text[*at + 1];
    switch (c) {
    case '"':
    case '\\':
    case '/':
        break;
    case 'b':
        c = '\b';
        break;
    case 'f':
        c = '\f';
        break;
    case 'n':
        c = '\n';
        break;
    case 'r':
        c = '\r';
        break;
    case 't':
        c = '\t';
        break;
    case 'u':
        return unescape_unicode(p, at, to);
    default:
        return clef_fail(p->err, CLEF_ERR_INPUT, "%s: byte %zu: an escape that JSON does not have",
                         p->label, *at);
    }
    p->text[(*to)++] = c;
    *at += 2;
    return CLEF_OK;
}

/* Reads the string whose opening quote stands at p->at. */
static clef_status read_string(parser *p, str *out) {
    const size_t begin = p->at + 1;
    size_t at = begin + json_plain(p->text + begin, p->n - begin);
    size_t to = at;
    while (at < p->n && p->text[at] != '"') {
        if (p->text[at] != '\\')
            return clef_fail(p->err, CLEF_ERR_INPUT,
                             "%s: byte %zu: a raw control U+%04X in a string, wanted an escape",
                             p->label, at, (unsigned)(unsigned char)p->text[at]);
        if (at + 1 == p->n) break;
        TRY(unescape(p, &at, &to));
        const size_t plain = json_plain(p->text + at, p->n - at);
        memmove(p->text + to, p->text + at, plain);
        at += plain;
        to += plain;
    }
    if (at >= p->n || p->text[at] != '"')
        return clef_fail(p->err, CLEF_ERR_INPUT,
                         "%s: byte %zu: a string that starts here does not end", p->label, p->at);
    *out = (str){p->text + begin, to - begin};
    p->at = at + 1;
    return CLEF_OK;
}

/* ---- the parser ---------------------------------------------------------------------------- */

static void skip_blanks(parser *p) {
    while (p->at < p->n && (p->text[p->at] == ' ' || p->text[p->at] == '\n' ||
                            p->text[p->at] == '\r' || p->text[p->at] == '\t'))
        p->at++;
}

/* Reads a name, the colon and the blanks before the value. */
static clef_status read_name(parser *p, str *name, const char *wanted) {
    if (p->text[p->at] != '"') return fail_at(p, p->at, wanted);
    TRY(read_string(p, name));
    skip_blanks(p);
    if (p->text[p->at] != ':') return fail_at(p, p->at, "':'");
    p->at++;
    skip_blanks(p);
    return CLEF_OK;
}

/* Reads a scalar, or opens a container and reads its bracket. */
static clef_status begin_value(parser *p, json *node) {
    node->at = p->at;
    const char c = p->text[p->at];
    if (c == '"') {
        node->kind = JSON_STRING;
        return read_string(p, &node->text);
    }
    if (c == '{' || c == '[') {
        node->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        p->at++;
        return open_container(p, node);
    }
    const size_t end = number_end(p);
    if (end > p->at) {
        node->kind = JSON_NUMBER;
        p->at = end;
    } else if (skip_word(p, STR("true"))) {
        node->kind = JSON_TRUE;
    } else if (skip_word(p, STR("false"))) {
        node->kind = JSON_FALSE;
    } else if (skip_word(p, STR("null"))) {
        node->kind = JSON_NULL;
    } else if (p->limits.allow_nonfinite &&
               (skip_word(p, STR("NaN")) || skip_word(p, STR("Infinity")) ||
                skip_word(p, STR("-Infinity")))) {
        node->kind = JSON_NUMBER;
    } else {
        return fail_at(p, p->at, "a value");
    }
    if (node->kind == JSON_NUMBER) node->text = (str){p->text + node->at, p->at - node->at};
    return CLEF_OK;
}

/* `node` is complete. Closes the containers that end behind it; *out becomes NULL when a further
 * value follows (with its *name, in an object), else the root. */
static clef_status finish_value(parser *p, json *node, json **out, str *name) {
    while (p->n_frames > 0) {
        TRY(add_child(p, node));
        skip_blanks(p);
        const bool object = p->frames[p->n_frames - 1].node->kind == JSON_OBJECT;
        const char c = p->text[p->at];
        if (c == ',') {
            p->at++;
            skip_blanks(p);
            *out = NULL;
            return object ? read_name(p, name, "a name in double quotes") : CLEF_OK;
        }
        if (c != (object ? '}' : ']'))
            return fail_at(p, p->at, object ? "',' or '}'" : "',' or ']'");
        p->at++;
        TRY(close_container(p, &node));
    }
    *out = node;
    return CLEF_OK;
}

static clef_status read_text(parser *p, json **root) {
    str name = {0};
    *root = NULL;
    skip_blanks(p);
    while (*root == NULL) {
        json *node = arena_alloc_small(p->mem, sizeof *node);
        if (node == NULL) return clef_fail_memory(p->err);
        *node = (json){.name = name};
        name = (str){0};
        TRY(begin_value(p, node));
        if (node->kind == JSON_ARRAY || node->kind == JSON_OBJECT) {
            skip_blanks(p);
            if (p->text[p->at] != (node->kind == JSON_ARRAY ? ']' : '}')) {
                if (node->kind == JSON_OBJECT)
                    TRY(read_name(p, &name, "a name in double quotes or '}'"));
                continue;
            }
            p->at++;
            TRY(close_container(p, &node));
        }
        TRY(finish_value(p, node, root, &name));
    }
    skip_blanks(p);
    return p->at == p->n ? CLEF_OK : fail_at(p, p->at, "the end of the text");
}

clef_status json_parse(const json **out, str text, const char *label, const json_limits *limits,
                       arena *mem, clef_error *err) {
    const size_t valid = utf8_check(text.p, text.n);
    if (valid < text.n)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: byte %zu: 0x%02x is no valid UTF-8 here", label,
                         valid, (unsigned)(unsigned char)text.p[valid]);
    char *copy = arena_alloc_small(mem, text.n + 1);
    if (copy == NULL) return mem->reached ? fail_ceiling(label, mem, err) : clef_fail_memory(err);
    if (text.n > 0) memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    parser p = {.label = label, .limits = *limits, .mem = mem, .err = err, .text = copy};
    p.n = text.n;
    if (p.limits.max_depth == 0) p.limits.max_depth = DEFAULT_MAX_DEPTH;
    if (p.limits.allow_bom && p.n >= 3 && memcmp(copy, "\xEF\xBB\xBF", 3) == 0) p.at = 3;
    json *root;
    clef_status s = read_text(&p, &root);
    free(p.frames);
    free(p.children);
    free(p.slots);
    free(p.places);
    if (s == CLEF_ERR_MEMORY && mem->reached) s = fail_ceiling(label, mem, err);
    if (s == CLEF_OK) *out = root;
    return s;
}

/* ---- looking ------------------------------------------------------------------------------- */

const json *json_get(const json *object, str name) {
    if (object == NULL || object->kind != JSON_OBJECT) return NULL;
    const json *member = object->first;
    while (member != NULL && !str_equal(member->name, name)) member = member->next;
    return member;
}

bool json_u64(uint64_t *out, const json *v, uint64_t max) {
    if (v == NULL || v->kind != JSON_NUMBER) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < v->text.n; i++) {
        const char c = v->text.p[i];
        if (c < '0' || c > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return false;
    }
    if (value > max) return false;
    *out = value;
    return true;
}

bool json_double(double *out, const json *v) {
    if (v == NULL || v->kind != JSON_NUMBER) return false;
    const bool negative = v->text.p[0] == '-';
    const char c = v->text.p[negative];
    if (c == 'N')
        *out = (double)NAN;
    else if (c == 'I')
        *out = negative ? -(double)INFINITY : (double)INFINITY;
    else
        *out = decimal_read(v->text);
    return true;
}

const char *json_kind_name(const json *v) {
    static const char *const names[] = {
        [JSON_NULL] = "null",        [JSON_FALSE] = "false",     [JSON_TRUE] = "true",
        [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
        [JSON_OBJECT] = "an object",
    };
    return v == NULL ? "nothing" : names[v->kind];
}
