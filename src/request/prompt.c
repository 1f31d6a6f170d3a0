/* prompt.c - lays a checked request out as the row of tokens that the model was trained on.
 *
 * In: a request and a tokenizer.  Out: ids, and which of them are each question's instructions and
 * each option.
 *
 * The row is prefix, media, state, schema, suffix; the texts are below. Three rules make the ids
 * equal the reference's (MODEL.md section 1):
 *   - every piece is tokenised alone, because BPE would merge across the seams of a joined text and
 *     move every span behind the seam;
 *   - a field's head ("\nFIELD 1\nID: ...") is one piece although it holds the question's id, so
 * the whole of it is treated as user text: its own words spell no control token;
 *   - only the state is ever cut, from its end, and by tokens.
 *
 * Own pieces always become control tokens where they spell one; for user text the caller decides.
 * Ids are gathered in growable lists, because no length is known before its text is tokenised, and
 * joined in the request's arena at the end. */
#include "request/prompt.h"

#include <assert.h>
#include <math.h>

#include "text/pyjson.h"

/* The fixed pieces, verbatim: the table of MODEL.md section 1. */
#define PREFIX                                                                                  \
    "<|im_start|>system\nRead the complete state and schema. Decide every field jointly. Each " \
    "answer must be exactly one of that field's allowed options.<|im_end|>\n<|im_start|>user\n" \
    "STATE:\n"
#define VISION_START "<|vision_start|>"
#define VISION_END "<|vision_end|>"
#define IMAGE_PAD "<|image_pad|>"
#define VIDEO_PAD "<|video_pad|>"
#define MEDIA_END "\n"
#define SCHEMA_HEADER "\n\nSCHEMA FIELDS:\n"
#define FIELD_HEAD_BEFORE_ID "\nFIELD %u\nID: "
#define FIELD_HEAD_AFTER_ID "\nTYPE: %s\nINSTRUCTION: "
#define ALLOWED "\nALLOWED OPTIONS:\n"
#define OPTION_LABEL "OPTION %u: "
#define OPTION_END "\n"
#define FIELD_END "END FIELD\n"
#define SUFFIX "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:"

/* The control tokens that the pieces spell. */
static const char *const TEXT_TOKENS[] = {"<|im_start|>", "<|im_end|>", "<think>", "</think>"};
static const char *const MEDIA_TOKENS[] = {VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD};
/* What stands for rows of pictures and must not come from user text beside them. */
static const char *const PAD_TOKENS[] = {IMAGE_PAD, VIDEO_PAD};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct {
    const tokenizer *t;
    const prompt_limits *limits;
    buf text; /* the piece that is being written */
    id_list prefix, media, state, schema, suffix;
    span *instructions, *options; /* while building: within the schema */
    prompt_picture *pictures;     /* while building: within the media */
    uint32_t n_pictures;
} builder;

/* Where a piece of user text comes from. */
typedef struct {
    const question *q; /* NULL: the state */
    const option *o;   /* NULL: the question's id, or its instructions */
    bool is_id;
} origin;

static void builder_free(builder *b) {
    buf_free(&b->text);
    id_list_free(&b->prefix);
    id_list_free(&b->media);
    id_list_free(&b->state);
    id_list_free(&b->schema);
    id_list_free(&b->suffix);
}

static clef_status check_tokens(const tokenizer *t, const char *const *names, size_t n,
                                clef_error *err) {
    for (size_t i = 0; i < n; i++)
        if (tokenizer_added_id(t, str_of(names[i])) < 0)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "tokenizer: no added token '%s', which every prompt needs", names[i]);
    return CLEF_OK;
}

clef_status prompt_check_tokenizer(const tokenizer *t, clef_error *err) {
    return check_tokens(t, TEXT_TOKENS, COUNT(TEXT_TOKENS), err);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static clef_status encode_own(const builder *b, str text, id_list *out, clef_error *err) {
    return tokenizer_encode(b->t, text, CLEF_CONTROL_REFERENCE, out, err);
}

/* Puts the JSON path of `from` before the sentence. */
static clef_status fail_at(const origin *from, clef_status status, const char *why,
                           clef_error *err) {
    if (from->q == NULL) return clef_fail(err, status, "state: %s", why);
    const shown_name id = request_show(from->q->id);
    if (from->o == NULL) {
        const bool is_id = from->is_id || from->q->instructions == NULL;
        return clef_fail(err, status, "questions.%s%s: %s", id.text, is_id ? "" : ".instructions",
                         why);
    }
    const bool level = from->q->kind == QUESTION_SCORE;
    return clef_fail(err, status, "questions.%s.criteria%s%s%s: %s", id.text, level ? "[" : ".",
                     request_show(from->o->id).text, level ? "]" : "", why);
}

static clef_status encode_user(const builder *b, origin from, str text, id_list *out,
                               clef_error *err) {
    clef_error why = {0};
    const size_t before = out->n;
    const clef_status s = tokenizer_encode(b->t, text, b->limits->control, out, &why);
    if (s != CLEF_OK) return fail_at(&from, s, why.text, err);
    if (b->limits->n_media == 0) return CLEF_OK;
    for (size_t k = 0; k < COUNT(PAD_TOKENS); k++) {
        const int32_t pad = tokenizer_added_id(b->t, str_of(PAD_TOKENS[k]));
        for (size_t i = before; pad >= 0 && i < out->n; i++)
            if (out->ids[i] == pad)
                return fail_at(&from, CLEF_ERR_INPUT,
                               "the text holds a control token that stands for a picture, beside "
                               "real pictures",
                               err);
    }
    return CLEF_OK;
}

/* A string as it is, any other value as JSON. */
static clef_status encode_value(builder *b, origin from, const json *v, id_list *out,
                                clef_error *err) {
    if (v->kind == JSON_STRING) return encode_user(b, from, v->text, out, err);
    b->text.n = 0;
    TRY(pyjson_write(&b->text, v, PYJSON_PROMPT, err));
    return encode_user(b, from, (str){b->text.p, b->text.n}, out, err);
}

/* ---- the parts of the row -------------------------------------------------------------------- */

/* `value` with one decimal as printf rounds it: by the exact value, an exact half to the even
 * digit; a point in any locale. */
static void add_tenths(buf *out, double value) {
    uint64_t tenths = (uint64_t)(value * 10.0);
    const double over = fma(value, 10.0, -((double)tenths + 0.5)); /* its sign is exact */
    if (over > 0 || (over == 0 && tenths % 2 == 1)) tenths++;
    buf_printf(out, "%llu.%llu", (unsigned long long)(tenths / 10),
               (unsigned long long)(tenths % 10));
}

/* One pad for each group; a video's groups come with their times and their own pair of markers
 * inside the outer one. */
static void add_media_text(buf *out, const prompt_media *m) {
    buf_add_text(out, VISION_START);
    if (m->seconds == NULL) buf_add_text(out, IMAGE_PAD);
    for (uint32_t g = 0; m->seconds != NULL && g < m->n_groups; g++) {
        buf_add_char(out, '<');
        add_tenths(out, m->seconds[g]);
        buf_add_text(out, " seconds>" VISION_START VIDEO_PAD VISION_END);
    }
    buf_add_text(out, VISION_END);
}

/* Writes the media row: each pad of `marks` as often as its group has tokens. */
static clef_status expand_pads(builder *b, const id_list *marks, clef_error *err) {
    const prompt_media *m = b->limits->media;
    uint32_t item = 0, group = 0;
    for (size_t i = 0; i < marks->n; i++) {
        const int32_t id = marks->ids[i];
        const bool pad = id == tokenizer_added_id(b->t, STR(IMAGE_PAD)) ||
                         id == tokenizer_added_id(b->t, STR(VIDEO_PAD));
        if (!pad) {
            TRY(id_list_add(&b->media, &id, 1, err));
            continue;
        }
        b->pictures[b->n_pictures++] =
            (prompt_picture){(uint32_t)b->media.n, m[item].n_rows, item, group};
        for (uint32_t k = 0; k < m[item].n_rows; k++) TRY(id_list_add(&b->media, &id, 1, err));
        if (++group == m[item].n_groups) {
            group = 0;
            item++;
        }
    }
    assert(item == b->limits->n_media);
    return CLEF_OK;
}

static clef_status build_media(builder *b, arena *mem, clef_error *err) {
    static const double longest = 1e12; /* seconds: thirty thousand years */
    const prompt_limits *limits = b->limits;
    if (limits->n_media == 0) return CLEF_OK;
    TRY(check_tokens(b->t, MEDIA_TOKENS, COUNT(MEDIA_TOKENS), err));
    size_t n_groups = 0, n_rows = 0;
    for (uint32_t i = 0; i < limits->n_media; i++) {
        const prompt_media *m = &limits->media[i];
        const size_t rows = (size_t)m->n_groups * m->n_rows;
        n_groups += m->n_groups;
        n_rows = rows > SIZE_MAX - n_rows ? SIZE_MAX : n_rows + rows;
        for (uint32_t g = 0; m->seconds != NULL && g < m->n_groups; g++)
            if (!(m->seconds[g] >= 0 && m->seconds[g] < longest))
                return clef_fail(err, CLEF_ERR_INPUT,
                                 "videos: a frame stands at %g seconds, wanted 0 to %g",
                                 m->seconds[g], longest);
    }
    /* Before anything is laid out: pads of that number would fill the memory first. */
    if (n_rows > limits->max_length)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "images, videos: they take %zu tokens, the limit of a record is %u; "
                         "smaller or fewer ones take less",
                         n_rows, limits->max_length);
    b->pictures = arena_alloc(mem, n_groups, sizeof *b->pictures);
    if (b->pictures == NULL) return clef_fail_memory(err);
    b->text.n = 0;
    for (uint32_t i = 0; i < limits->n_media; i++) add_media_text(&b->text, &limits->media[i]);
    buf_add_text(&b->text, MEDIA_END);
    TRY(buf_status(&b->text, err));
    id_list marks = {0};
    clef_status s = encode_own(b, (str){b->text.p, b->text.n}, &marks, err);
    if (s == CLEF_OK) s = expand_pads(b, &marks, err);
    id_list_free(&marks);
    return s;
}

static clef_status build_option(builder *b, const question *q, uint32_t i, span *out,
                                clef_error *err) {
    const option *o = &q->options[i];
    b->text.n = 0;
    buf_printf(&b->text, OPTION_LABEL, i + 1);
    TRY(buf_status(&b->text, err));
    TRY(encode_own(b, (str){b->text.p, b->text.n}, &b->schema, err));
    b->text.n = 0;
    buf_add_char(&b->text, '{');
    if (o->description->kind != JSON_NULL) {
        buf_add_text(&b->text, "\"description\":");
        TRY(pyjson_write(&b->text, o->description, PYJSON_PROMPT, err));
        buf_add_char(&b->text, ',');
    }
    buf_add_text(&b->text, "\"option_id\":");
    pyjson_string(&b->text, o->id);
    buf_add_char(&b->text, '}');
    TRY(buf_status(&b->text, err));
    out->begin = (uint32_t)b->schema.n;
    TRY(encode_user(b, (origin){.q = q, .o = o}, (str){b->text.p, b->text.n}, &b->schema, err));
    out->end = (uint32_t)b->schema.n;
    return encode_own(b, STR(OPTION_END), &b->schema, err);
}

static clef_status build_field(builder *b, const question *q, uint32_t number, span *instructions,
                               span *options, clef_error *err) {
    b->text.n = 0;
    buf_printf(&b->text, FIELD_HEAD_BEFORE_ID, number);
    buf_add_str(&b->text, q->id);
    buf_printf(&b->text, FIELD_HEAD_AFTER_ID, question_kind_name(q->kind));
    TRY(buf_status(&b->text, err));
    const origin id = {.q = q, .is_id = true};
    TRY(encode_user(b, id, (str){b->text.p, b->text.n}, &b->schema, err));
    instructions->begin = (uint32_t)b->schema.n;
    if (q->instructions == NULL)
        TRY(encode_user(b, id, q->id, &b->schema, err));
    else
        TRY(encode_value(b, (origin){.q = q}, q->instructions, &b->schema, err));
    instructions->end = (uint32_t)b->schema.n;
    TRY(encode_own(b, STR(ALLOWED), &b->schema, err));
    for (uint32_t i = 0; i < q->n_options; i++) TRY(build_option(b, q, i, &options[i], err));
    return encode_own(b, STR(FIELD_END), &b->schema, err);
}

static clef_status build_parts(builder *b, const request *rq, arena *mem, clef_error *err) {
    TRY(encode_own(b, STR(PREFIX), &b->prefix, err));
    TRY(build_media(b, mem, err));
    TRY(encode_own(b, STR(SCHEMA_HEADER), &b->schema, err));
    span *options = b->options;
    for (uint32_t i = 0; i < rq->n_questions; i++) {
        const question *q = &rq->questions[i];
        TRY(build_field(b, q, i + 1, &b->instructions[i], options, err));
        options += q->n_options;
    }
    TRY(encode_own(b, STR(SUFFIX), &b->suffix, err));
    return encode_value(b, (origin){0}, rq->state, &b->state, err);
}

/* ---- length ---------------------------------------------------------------------------------- */

/* How many state tokens stay. */
static clef_status fit_state(size_t *kept, const builder *b, clef_error *err) {
    const prompt_limits *limits = b->limits;
    const size_t fixed = b->prefix.n + b->media.n + b->schema.n + b->suffix.n;
    if (fixed > limits->max_length)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "questions: schema requires %zu tokens before state; maximum is %u "
                         "(%zu of them are the questions')",
                         fixed, limits->max_length, b->schema.n);
    const size_t room = limits->max_length - fixed;
    size_t n = b->state.n;
    if (limits->cap_state && n > limits->max_state_tokens) n = limits->max_state_tokens;
    if (n > room && limits->truncate == CLEF_TRUNCATE_NONE)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "state: the record needs %zu tokens, the limit is %u; shorten the state, "
                         "allow it to be cut or raise the limit",
                         fixed + n, limits->max_length);
    *kept = n > room ? room : n;
    return CLEF_OK;
}

static void append(int32_t *row, uint32_t *n_row, const int32_t *ids, size_t n) {
    if (n > 0) memcpy(row + *n_row, ids, n * sizeof *ids);
    *n_row += (uint32_t)n;
}

static void shift(span *spans, uint32_t n, uint32_t by) {
    for (uint32_t i = 0; i < n; i++) spans[i] = (span){spans[i].begin + by, spans[i].end + by};
}

/* Joins the parts, which together are at most max_length tokens long. */
static clef_status join(prompt *out, builder *b, const request *rq, size_t kept, arena *mem,
                        clef_error *err) {
    prompt p = {
        .n_prefix = (uint32_t)b->prefix.n,
        .n_media = (uint32_t)b->media.n,
        .n_state = (uint32_t)kept,
        .n_schema = (uint32_t)b->schema.n,
        .n_suffix = (uint32_t)b->suffix.n,
        .n_state_cut = b->state.n - kept,
        .instructions = b->instructions,
        .options = b->options,
        .pictures = b->pictures,
        .n_pictures = b->n_pictures,
    };
    const size_t n = (size_t)p.n_prefix + p.n_media + p.n_state + p.n_schema + p.n_suffix;
    int32_t *row = arena_alloc(mem, n, sizeof *row);
    if (row == NULL) return clef_fail_memory(err);
    append(row, &p.n_ids, b->prefix.ids, b->prefix.n);
    append(row, &p.n_ids, b->media.ids, b->media.n);
    append(row, &p.n_ids, b->state.ids, kept);
    const uint32_t schema = p.n_ids;
    append(row, &p.n_ids, b->schema.ids, b->schema.n);
    append(row, &p.n_ids, b->suffix.ids, b->suffix.n);
    for (uint32_t i = 0; i < b->n_pictures; i++) b->pictures[i].begin += p.n_prefix;
    shift(b->instructions, rq->n_questions, schema);
    shift(b->options, rq->n_options, schema);
    p.ids = row;
    *out = p;
    return CLEF_OK;
}

clef_status prompt_build(prompt *out, const request *rq, const tokenizer *t,
                         const prompt_limits *limits, arena *mem, clef_error *err) {
    TRY(prompt_check_tokenizer(t, err));
    builder b = {
        .t = t,
        .limits = limits,
        .instructions = arena_alloc(mem, rq->n_questions, sizeof(span)),
        .options = arena_alloc(mem, rq->n_options, sizeof(span)),
    };
    if (b.instructions == NULL || b.options == NULL) return clef_fail_memory(err);
    size_t kept = 0;
    clef_status s = build_parts(&b, rq, mem, err);
    if (s == CLEF_OK) s = fit_state(&kept, &b, err);
    if (s == CLEF_OK) s = join(out, &b, rq, kept, mem, err);
    builder_free(&b);
    return s;
}

/* ---- what `clef encode` prints --------------------------------------------------------------- */

static void write_span(buf *out, span s) {
    buf_printf(out, "\"span\": [%u, %u]", s.begin, s.end);
}

void prompt_write(buf *out, const prompt *p, const request *rq) {
    buf_add_text(out, "\"ids\": [");
    for (uint32_t i = 0; i < p->n_ids; i++) buf_printf(out, i > 0 ? ", %d" : "%d", p->ids[i]);
    buf_add_text(out, "], \"questions\": [");
    const span *spans = p->options;
    for (uint32_t i = 0; i < rq->n_questions; i++) {
        const question *q = &rq->questions[i];
        buf_add_text(out, i > 0 ? ", {\"id\": " : "{\"id\": ");
        pyjson_string(out, q->id);
        buf_printf(out, ", \"type\": \"%s\", ", question_kind_name(q->kind));
        write_span(out, p->instructions[i]);
        buf_add_text(out, ", \"options\": [");
        for (uint32_t k = 0; k < q->n_options; k++) {
            buf_add_text(out, k > 0 ? ", {\"id\": " : "{\"id\": ");
            pyjson_string(out, q->options[k].id);
            buf_add_text(out, ", ");
            write_span(out, *spans++);
            buf_add_char(out, '}');
        }
        buf_add_text(out, "]}");
    }
    buf_printf(out,
               "], \"tokens\": {\"prefix\": %u, \"media\": %u, \"state\": %u, \"schema\": %u, "
               "\"suffix\": %u}",
               p->n_prefix, p->n_media, p->n_state, p->n_schema, p->n_suffix);
}
