/* json.h - JSON text to a value tree that keeps what Python's parser keeps: member order, the raw
 * spelling of numbers, strings with their lengths. The model is CPython's json.loads; json.c says
 * where it differs. */
#ifndef TEXT_JSON_H
#define TEXT_JSON_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef enum {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER, /* NaN, Infinity and -Infinity too, where the limits allow them */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

/* A node of the tree; everything it points to lives in the arena of the parse. */
typedef struct json json;
struct json {
    json_kind kind;
    uint32_t n;        /* elements of an array, members of an object */
    str text;          /* string: unescaped UTF-8; number: its spelling, as it stands in the text */
    str name;          /* unescaped name, when this node is a member of an object */
    const json *first; /* first element or member, in order */
    const json *next;  /* the following element or member */
    size_t at;         /* byte offset of the value in the text */
};

typedef enum {
    JSON_LAST_WINS, /* Python: the last value stands at the first one's place */
    JSON_REFUSE_DUPLICATES
} json_duplicates;

typedef struct {
    uint32_t max_depth;   /* nested arrays and objects; 0: 512 */
    bool allow_nonfinite; /* NaN, Infinity, -Infinity as Python's parser takes them */
    bool allow_bom;       /* one UTF-8 byte-order mark before the text is skipped */
    json_duplicates duplicates;
} json_limits;

/* Parses exactly one value with nothing but blanks around it. Linear in the length, without
 * recursion. Errors name the byte offset, what was found and what was wanted:
 *   CLEF_ERR_INPUT   no JSON, invalid UTF-8, a lone surrogate, a repeated name where refused
 *   CLEF_ERR_LIMIT   nested deeper than max_depth, or beyond the ceiling of the arena
 *   CLEF_ERR_MEMORY
 * `label` names the text in error sentences ("request", a file's path). `text` need not outlive the
 * call: the tree copies what it keeps. On failure *out is untouched; what was taken from the arena
 * stays there. Integers may have any number of digits (CPython stops at 4,300). */
clef_status json_parse(const json **out, str text, const char *label, const json_limits *limits,
                       arena *mem, clef_error *err);

/* The member of that name, or NULL; NULL too when `object` is NULL or no object. A linear walk. */
const json *json_get(const json *object, str name);

/* For loaders: whether `v` is a number written as a plain non-negative integer (digits only) of at
 * most `max`. */
bool json_u64(uint64_t *out, const json *v, uint64_t max);

/* For loaders: the double a number's spelling denotes, correctly rounded; false when no number. */
bool json_double(double *out, const json *v);

/* A member and its place among its siblings. */
typedef struct {
    const json *member;
    size_t place;
} json_place;

/* Sorts by name, in byte order (the order of code points); equal names keep their order. n log n;
 * `scratch` has room for n too. */
void json_sort(json_place *members, json_place *scratch, size_t n);

/* How many of the first bytes stand for themselves inside a JSON string: all up to a quote, a
 * backslash or a control below 0x20. */
size_t json_plain(const char *p, size_t n);

/* "null", "a string", "an array", ... for error sentences. */
const char *json_kind_name(const json *v);

#endif
