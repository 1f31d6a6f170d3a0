/* prompt.h - a checked request to token ids and spans. MODEL.md section 1. */
#ifndef REQUEST_PROMPT_H
#define REQUEST_PROMPT_H

#include "base/buf.h"
#include "request/request.h"
#include "text/tokenizer.h"

/* A picture, or a video as its groups of frames. */
typedef struct {
    uint32_t n_groups;     /* a picture: 1 */
    uint32_t n_rows;       /* tokens of a group */
    const double *seconds; /* [n_groups] times of a video's groups; NULL: a picture */
} prompt_media;

/* Where the tokens of a group stand in the row. */
typedef struct {
    uint32_t begin, n_rows;
    uint32_t item, group; /* item: an index into prompt_limits.media */
} prompt_picture;

typedef struct {
    uint32_t max_length;       /* tokens of the whole record */
    bool cap_state;            /* keep at most max_state_tokens of the state, 0 included */
    uint32_t max_state_tokens; /* without cap_state: ignored */
    clef_truncate truncate;
    clef_control control;
    const prompt_media *media; /* [n_media]: pictures, then videos */
    uint32_t n_media;
} prompt_limits;

typedef struct {
    const int32_t *ids; /* [n_ids] */
    uint32_t n_ids;
    uint32_t n_prefix, n_media, n_state, n_schema, n_suffix; /* their sum is n_ids */
    size_t n_state_cut;                                      /* state tokens that were left out */
    const span *instructions;       /* [n_questions], in tokens of the row */
    const prompt_picture *pictures; /* [n_pictures] in the row's order */
    uint32_t n_pictures;
    const span *options; /* [n_options], flat, questions in order, options in scoring order */
} prompt;

/* Whether the tokenizer has the control tokens that every prompt is built with; without one of them
 * its name would be spelled out letter by letter. CLEF_ERR_FORMAT names the missing one.
 * prompt_build asks too; asking when a model is opened tells earlier. */
clef_status prompt_check_tokenizer(const tokenizer *t, clef_error *err);

/* Tokenises every piece on its own and joins them. Everything *out points to lives in `mem`.
 * CLEF_ERR_LIMIT names the tokens needed and the limit; CLEF_ERR_INPUT a field that cannot be
 * tokenised. */
clef_status prompt_build(prompt *out, const request *rq, const tokenizer *t,
                         const prompt_limits *limits, arena *mem, clef_error *err);

/* Appends the members of the object that `clef encode` prints, without its braces, spelled as
 * json.dumps would. */
void prompt_write(buf *out, const prompt *p, const request *rq);

#endif
