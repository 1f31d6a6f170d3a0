/* tokenizer.h - one piece of text to token ids, as the reference's tokenizer.json gives them. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/status.h"
#include "base/str.h"
#include "clef.h"

typedef struct tokenizer tokenizer;

/* The two split patterns of this family; split.c has their rules. */
typedef enum { SPLIT_QWEN2, SPLIT_QWEN35 } split_pattern;

/* Growable ids. {0} is empty; free with id_list_free. */
typedef struct {
    int32_t *ids;
    size_t n, cap;
} id_list;

clef_status id_list_add(id_list *list, const int32_t *ids, size_t n, clef_error *err);
void id_list_free(id_list *list);

/* Loads tokenizer.json at `path`. `pattern_override` is NULL (as the file states) or "qwen2" or
 * "qwen35". Free with tokenizer_free. The tokenizer is read-only afterwards: any thread may use it.
 */
clef_status tokenizer_load(tokenizer **out, const char *path, const char *pattern_override,
                           clef_error *err);

/* The same from memory; `label` stands for the path in error sentences. */
clef_status tokenizer_parse(tokenizer **out, str text, const char *label,
                            const char *pattern_override, clef_error *err);
void tokenizer_free(tokenizer *t);

/* Appends the ids of one piece. `text` is valid UTF-8 (else CLEF_ERR_INPUT with the byte offset).
 * Under CLEF_CONTROL_PLAIN no added token is ever produced; under CLEF_CONTROL_REJECT a spelling of
 * one is CLEF_ERR_INPUT naming it. Linear or n log n in the length for any text. */
clef_status tokenizer_encode(const tokenizer *t, str text, clef_control control, id_list *out,
                             clef_error *err);

/* What was loaded, for `clef info` and the binder. */
typedef struct {
    split_pattern stated; /* in the file */
    split_pattern used;   /* after the override */
    bool normalizes;      /* NFC; false when the file states no normalizer */
    uint32_t n_vocab;     /* base entries */
    uint32_t n_merges;
    uint32_t n_added;
    uint32_t max_id;        /* the largest id any text can give */
    uint32_t n_unreachable; /* base entries that no merge produces */
} tokenizer_facts;
tokenizer_facts tokenizer_describe(const tokenizer *t);

/* The id of the added token with exactly this content, or -1. */
int32_t tokenizer_added_id(const tokenizer *t, str content);

#endif
