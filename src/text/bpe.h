/* bpe.h - the vocabulary and the merges of tokenizer.json: one piece of text to ids. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "text/json.h"
#include "text/tokenizer.h"

enum {
    BPE_MAX_TOKENS = (1 << 20) - 1, /* ids, less one that marks a free slot */
    BPE_MAX_MERGES = (1 << 24) - 1,
    BPE_MAX_TOKEN_BYTES = (1 << 11) - 1
};

typedef struct bpe bpe;

/* Reads `vocab` (object of spelling to id) and `merges` (array), the members of that name of
 * tokenizer.json's "model". Refused with CLEF_ERR_FORMAT: ids that are not exactly 0 to n - 1, an
 * empty or overlong entry, a missing single byte, a merge whose parts or result are no entries,
 * merges of mixed forms. Free with bpe_free. `label` is for error sentences. */
clef_status bpe_load(bpe **out, const json *vocab, const json *merges, const char *label,
                     clef_error *err);
void bpe_free(bpe *b);

/* Appends the ids of one piece: what the merges, applied lowest rank first and of equal ranks the
 * leftmost first, leave. n log n in the length. On failure (memory; a piece beyond 4 GiB) what was
 * appended must not be used. */
clef_status bpe_encode(const bpe *b, str piece, id_list *out, clef_error *err);

uint32_t bpe_n_tokens(const bpe *b);
uint32_t bpe_n_merges(const bpe *b); /* distinct pairs */
uint32_t
bpe_n_unreachable(const bpe *b); /* entries that bpe_encode of their own bytes does not give */

#endif
