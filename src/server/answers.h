/* answers.h - answers that were given lately, and requests in flight that wait for an equal one.
 *
 * Client libraries send a request again when ten seconds pass without an answer. The second request
 * then joins the first one's work, or finds its answer. */
#ifndef SERVER_ANSWERS_H
#define SERVER_ANSWERS_H

#include <stdbool.h>

#include "base/digest.h"
#include "clef.h"

typedef struct answers answers;
typedef struct kept_answer kept_answer;

/* What is given again; the text belongs to the entry. */
typedef struct {
    const char *json;
    size_t json_len;
    uint32_t n_questions, n_tokens, n_cached;
} kept_content;

typedef enum {
    ANSWER_LEAD, /* the caller computes it and calls answers_finish or answers_fail */
    ANSWER_WAIT, /* somebody else does: answers_wait */
    ANSWER_READY,
    ANSWER_FAILED /* answers_error tells why; a cancelled one may be begun again */
} answer_state;

/* Keeps up to `max_bytes` for `seconds` each. Close when nobody holds an entry. */
clef_status answers_open(answers **out, size_t max_bytes, double seconds, clef_error *err);
void answers_close(answers *a);

/* The entry of a key (a digest of everything that the answer depends on), made if there is none.
 * NULL: no memory. Give it back with answers_release. */
kept_answer *answers_begin(answers *a, const char key[DIGEST_HEX], answer_state *state);
void answers_release(answers *a, kept_answer *k);

/* Waits until the entry is no longer ANSWER_WAIT, at most `seconds`. */
answer_state answers_wait(answers *a, kept_answer *k, double seconds);

/* Whether anybody but the one who computes holds the entry. */
bool answers_wanted(answers *a, kept_answer *k);

/* Copies the text. Without memory for it the entry is failed with CLEF_ERR_MEMORY. */
void answers_finish(answers *a, kept_answer *k, const kept_content *content);
void answers_fail(answers *a, kept_answer *k, const clef_error *why);

/* Of an entry that is ready, or failed; good until it is released. */
kept_content answers_content(const kept_answer *k);
const clef_error *answers_error(const kept_answer *k);

void answers_size(answers *a, size_t *bytes, size_t *entries);

#endif
