/* request_fuzz.c - any body through request, prompt and answer.
 *
 * The first two bytes are options, the rest is a body; or, when bit 6 of the first byte is set,
 * texts separated by bytes FF that are put into the places of a well-formed request, because few
 * mutations of JSON stay JSON.
 *
 * What parses must give a prompt whose parts sum up, whose ids exist and whose spans are ordered,
 * not empty and inside the schema. Control tokens stand outside our own words only under the
 * reference's policy; where it gives none, the three policies agree, and where it gives some,
 * reject refuses. What the answer and encode print is JSON again, with the request's questions. */
#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/utf8.h"
#include "request/answer.h"
#include "request/prompt.h"
#include "text/pyjson.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PLENTY = 1 << 24, DEEPEST_OUTPUT = 4096 };

static tokenizer *toy;
static int32_t max_id;
static bool *is_added; /* [max_id + 1] */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *path = TESTDATA "toy-r2/tokenizer.json";
    buf text = {0};
    arena mem = {0};
    const json *root = NULL;
    if (file_read(&text, path, 1 << 20, NULL) != CLEF_OK ||
        json_parse(&root, (str){text.p, text.n}, path, &(json_limits){0}, &mem, NULL) != CLEF_OK ||
        tokenizer_load(&toy, path, NULL, NULL) != CLEF_OK)
        abort();
    max_id = (int32_t)tokenizer_describe(toy).max_id;
    is_added = calloc((size_t)max_id + 1, sizeof *is_added);
    assert(is_added != NULL);
    const json *added = json_get(root, STR("added_tokens"));
    for (const json *v = added->first; v != NULL; v = v->next)
        is_added[tokenizer_added_id(toy, json_get(v, STR("content"))->text)] = true;
    arena_free(&mem);
    buf_free(&text);
    return 0;
}

/* The text up to the next byte FF, taken off the front of *rest; empty when nothing is left. */
static str next_text(str *rest) {
    size_t n = 0;
    while (n < rest->n && (unsigned char)rest->p[n] != 0xFF) n++;
    const str text = {rest->p, n};
    const size_t used = n < rest->n ? n + 1 : n;
    *rest = (str){rest->p + used, rest->n - used};
    return text;
}

/* Writes a request whose texts are the given ones; false when one is no UTF-8. */
static bool fill_template(buf *out, str texts) {
    static const char *const PARTS[] = {
        "{\"model\":",
        ",\"state\":",
        ",\"questions\":{\"q\":{\"type\":\"noul\",\"instructions\":",
        "},\"w\":{\"type\":\"choice\",\"criteria\":{",
        ":",
        ",",
        ":null}},",
        ":{\"type\":\"score\",\"instructions\":{",
        ":1},\"criteria\":[",
        ",[",
        "]]}}}",
    };
    const size_t n = sizeof PARTS / sizeof PARTS[0];
    for (size_t i = 0; i < n; i++) {
        buf_add_text(out, PARTS[i]);
        if (i + 1 == n) break;
        const str text = next_text(&texts);
        if (utf8_check(text.p, text.n) != text.n) return false;
        pyjson_string(out, text);
    }
    return true;
}

/* Checks the row and tells whether its middle, where user text is, holds an added token. */
static bool check_prompt(const prompt *p, const request *rq) {
    assert(p->n_prefix + p->n_media + p->n_state + p->n_schema + p->n_suffix == p->n_ids);
    bool added = false;
    for (uint32_t i = 0; i < p->n_ids; i++) {
        assert(p->ids[i] >= 0 && p->ids[i] <= max_id);
        added = added || (i >= p->n_prefix && i < p->n_ids - p->n_suffix && is_added[p->ids[i]]);
    }
    uint32_t at = p->n_ids - p->n_suffix - p->n_schema;
    const span *options = p->options;
    for (uint32_t q = 0; q < rq->n_questions; q++) {
        assert(p->instructions[q].begin > at && p->instructions[q].end > p->instructions[q].begin);
        at = p->instructions[q].end;
        for (uint32_t k = 0; k < rq->questions[q].n_options; k++, options++) {
            assert(options->begin > at && options->end > options->begin);
            at = options->end;
        }
    }
    assert(at < p->n_ids - p->n_suffix);
    assert(options == p->options + rq->n_options);
    return added;
}

static void same_rows(const prompt *a, const prompt *b) {
    assert(a->n_ids == b->n_ids);
    assert(memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids) == 0);
}

static void check_policies(const request *rq, arena *mem) {
    prompt_limits limits = {.max_length = PLENTY, .control = CLEF_CONTROL_PLAIN};
    prompt plain = {0}, reference = {0}, reject = {0};
    if (prompt_build(&plain, rq, toy, &limits, mem, NULL) != CLEF_OK) abort();
    assert(!check_prompt(&plain, rq));
    limits.control = CLEF_CONTROL_REFERENCE;
    if (prompt_build(&reference, rq, toy, &limits, mem, NULL) != CLEF_OK) abort();
    const bool added = check_prompt(&reference, rq);
    clef_error err = {0};
    limits.control = CLEF_CONTROL_REJECT;
    const clef_status s = prompt_build(&reject, rq, toy, &limits, mem, &err);
    assert(s == (added ? CLEF_ERR_INPUT : CLEF_OK));
    if (added) {
        assert(strncmp(err.text, "state: ", 7) == 0 || strncmp(err.text, "questions.", 10) == 0);
        return;
    }
    same_rows(&plain, &reference);
    same_rows(&plain, &reject);
}

/* Parses what was printed; a name that stands twice fails. */
static const json *read_back(const buf *out, arena *mem) {
    const json_limits limits = {.max_depth = DEEPEST_OUTPUT,
                                .allow_nonfinite = true, /* a legend may hold NaN */
                                .duplicates = JSON_REFUSE_DUPLICATES};
    const json *root = NULL;
    assert(!out->failed);
    if (json_parse(&root, (str){out->p, out->n}, "output", &limits, mem, NULL) != CLEF_OK) abort();
    return root;
}

static void check_answer(const request *rq, const prompt *p, const answer_style *style,
                         arena *mem) {
    float *probabilities = arena_alloc(mem, rq->n_options, sizeof *probabilities);
    assert(probabilities != NULL);
    for (uint32_t q = 0, at = 0; q < rq->n_questions; q++)
        for (uint32_t k = 0; k < rq->questions[q].n_options; k++)
            probabilities[at++] = 1.0f / (float)rq->questions[q].n_options;
    buf out = {0};
    if (answer_write(&out, rq, p, probabilities, style, NULL) != CLEF_OK) abort();
    const json *root = read_back(&out, mem);
    const json *answer = json_get(root, STR("answers"))->first;
    for (uint32_t q = 0; q < rq->n_questions; q++, answer = answer->next)
        assert(str_equal(answer->name, rq->questions[q].id));
    assert(answer == NULL);
    uint64_t n = 0;
    assert(json_u64(&n, json_get(json_get(root, STR("usage")), STR("input_tokens")), PLENTY));
    assert(n == p->n_ids);
    buf_free(&out);
    buf_add_char(&out, '{');
    prompt_write(&out, p, rq);
    buf_add_char(&out, '}');
    root = read_back(&out, mem);
    assert(json_get(root, STR("ids"))->n == p->n_ids);
    assert(json_get(root, STR("questions"))->n == rq->n_questions);
    buf_free(&out);
}

static void check_cut(const request *rq, uint32_t max_length, clef_truncate truncate, arena *mem) {
    const prompt_limits limits = {.max_length = max_length, .truncate = truncate};
    prompt p = {0};
    clef_error err = {0};
    const clef_status s = prompt_build(&p, rq, toy, &limits, mem, &err);
    assert(s == CLEF_OK || s == CLEF_ERR_LIMIT);
    if (s != CLEF_OK) return;
    check_prompt(&p, rq);
    assert(p.n_ids <= max_length);
    assert(p.n_state_cut == 0 || (truncate == CLEF_TRUNCATE_STATE && p.n_ids == max_length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) return 0;
    buf filled = {0};
    str body = {(const char *)data + 2, n - 2};
    if (data[0] & 64) {
        const bool valid = fill_template(&filled, body);
        if (!valid) {
            buf_free(&filled);
            return 0;
        }
        body = (str){filled.p, filled.n};
    }
    arena mem = {0};
    request rq = {0};
    clef_error err = {0};
    if (request_parse(&rq, body, &mem, &err) == CLEF_OK) {
        const answer_style style = {
            .confidence = (clef_confidence)(data[0] % 3),
            .digits = data[0] & 8 ? 7 : 4,
        };
        prompt p = {0};
        const prompt_limits limits = {.max_length = PLENTY};
        if (prompt_build(&p, &rq, toy, &limits, &mem, NULL) != CLEF_OK) abort();
        check_policies(&rq, &mem);
        check_answer(&rq, &p, &style, &mem);
        check_cut(&rq, data[1] * 4u, data[0] & 16 ? CLEF_TRUNCATE_STATE : CLEF_TRUNCATE_NONE, &mem);
    } else {
        assert(err.status != CLEF_OK && err.text[0] != '\0');
        assert(utf8_check(err.text, strlen(err.text)) == strlen(err.text));
    }
    buf_free(&filled);
    arena_free(&mem);
    return 0;
}
