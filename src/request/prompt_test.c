/* Tests of prompt.c over the toy tokenizers. testdata/contract/prompts.json holds the reference's
 * ids and spans; tests/contract_test.c compares the recorded runs of the real model. */
#include "request/prompt.h"

#include <math.h>

#include "tests/recorded.h"

#include <stdio.h>

#include "base/file.h"
#include "text/pyjson.h"

#include "tests/oom.h"

enum { MANY = 1 << 30 }; /* a max_length that nothing here reaches */

static tokenizer *toy;
static arena memory;

static tokenizer *load(const char *path) {
    tokenizer *t = NULL;
    clef_error err = {0};
    if (tokenizer_load(&t, path, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
    return t;
}

static int open_toy(void **state) {
    (void)state;
    toy = load(TESTDATA "toy-r2/tokenizer.json");
    return 0;
}

static int close_toy(void **state) {
    (void)state;
    tokenizer_free(toy);
    return 0;
}

static int forget(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

/* Parses and builds; what comes out lives until the end of the test. */
static clef_status build(prompt *p, request *rq, str body, const tokenizer *t,
                         const prompt_limits *limits, clef_error *err) {
    if (request_parse(rq, body, &memory, err) != CLEF_OK)
        fail_msg("%.*s\n%s", STR_ARG(body), err->text);
    return prompt_build(p, rq, t, limits, &memory, err);
}

static void expect_built(prompt *p, const char *body, const prompt_limits *limits) {
    request rq = {0};
    clef_error err = {0};
    if (build(p, &rq, str_of(body), toy, limits, &err) != CLEF_OK)
        fail_msg("%s\n%s", body, err.text);
}

static void expect_refused(const char *body, const prompt_limits *limits, clef_status status,
                           const char *sentence) {
    request rq = {0};
    prompt p = {0};
    clef_error err = {0};
    const clef_status s = build(&p, &rq, str_of(body), toy, limits, &err);
    if (s != status || strcmp(err.text, sentence) != 0)
        fail_msg("%s\n found  %d %s\n wanted %d %s", body, s, err.text, status, sentence);
    assert_null(p.ids);
}

#define ONE(question) "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":" question "}}"
#define STATE(state) \
    "{\"model\":\"m\",\"state\":" state ",\"questions\":{\"q\":{\"type\":\"noul\"}}}"

/* ---- against the reference ------------------------------------------------------------------- */

static void same_spans(const json *questions, const request *rq, const prompt *p,
                       const char *name) {
    uint32_t i = 0, at = 0;
    assert_int_equal(questions->n, rq->n_questions);
    for (const json *v = questions->first; v != NULL; v = v->next, i++) {
        const question *q = &rq->questions[i];
        const json *options = recorded_get(v, "options");
        recorded_same_text(q->id, recorded_text(v, "id"), name);
        recorded_same_text(str_of(question_kind_name(q->kind)), recorded_text(v, "type"), name);
        if (!recorded_is_span(recorded_get(v, "span"), p->instructions[i]))
            fail_msg("%s: span of question %u", name, i);
        assert_int_equal(options->n, q->n_options);
        uint32_t k = 0;
        for (const json *o = options->first; o != NULL; o = o->next, k++, at++) {
            recorded_same_text(q->options[k].id, recorded_text(o, "id"), name);
            if (!recorded_is_span(recorded_get(o, "span"), p->options[at]))
                fail_msg("%s: span of option %u of question %u", name, k, i);
        }
    }
}

static void same_prompt(const json *row, const tokenizer *t) {
    const char *name = arena_copy(&memory, recorded_text(row, "name")).p;
    const json *images = recorded_get(row, "image_tokens");
    prompt_media media[4] = {{0}};
    uint32_t n_media = 0;
    assert_true(images->n <= 4);
    for (const json *v = images->first; v != NULL; v = v->next) {
        uint64_t n = 0;
        assert_true(json_u64(&n, v, UINT32_MAX));
        media[n_media++] = (prompt_media){.n_groups = 1, .n_rows = (uint32_t)n};
    }
    const bool plain = str_equal(recorded_text(row, "policy"), STR("plain"));
    const prompt_limits limits = {
        .max_length = MANY,
        .control = plain ? CLEF_CONTROL_PLAIN : CLEF_CONTROL_REFERENCE,
        .media = media,
        .n_media = n_media,
    };
    request rq = {0};
    prompt p = {0};
    clef_error err = {0};
    if (build(&p, &rq, recorded_text(row, "request"), t, &limits, &err) != CLEF_OK)
        fail_msg("%s: %s", name, err.text);
    const size_t at = recorded_ids_differ(recorded_get(row, "ids"), p.ids, p.n_ids);
    if (at != SIZE_MAX) fail_msg("%s: the ids differ from index %zu", name, at);
    const json *tokens = recorded_get(row, "tokens");
    assert_int_equal(p.n_prefix, recorded_count(tokens, "prefix"));
    assert_int_equal(p.n_media, recorded_count(tokens, "media"));
    assert_int_equal(p.n_state, recorded_count(tokens, "state"));
    assert_int_equal(p.n_schema, recorded_count(tokens, "schema"));
    assert_int_equal(p.n_suffix, recorded_count(tokens, "suffix"));
    assert_int_equal(p.n_state_cut, 0);
    same_spans(recorded_get(row, "questions"), &rq, &p, name);
}

static void ids_and_spans_equal_the_reference_s(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "contract/prompts.json"), "rows");
    tokenizer *other = load(TESTDATA "toy-r1-tied/tokenizer.json");
    uint32_t n_toy = 0;
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const bool is_toy = str_equal(recorded_text(row, "toy"), STR("toy-r2"));
        n_toy += is_toy;
        same_prompt(row, is_toy ? toy : other);
    }
    assert_true(n_toy >= 30 && rows->n == 2 * n_toy);
    tokenizer_free(other);
    arena_free(&mem);
}

static void what_encode_prints_holds_the_ids_and_spans_in_python_s_spelling(void **state) {
    (void)state;
    const char *body = "{\"model\":\"m\",\"state\":{\"a\":1},\"questions\":{\"q\\\"\\u0000\":{"
                       "\"type\":\"choice\",\"criteria\":{\"z\":1,\"\\u00e9\":null}},"
                       "\"n\":{\"type\":\"noul\"}}}";
    request rq = {0};
    prompt p = {0};
    clef_error err = {0};
    const prompt_limits limits = {.max_length = MANY};
    assert_int_equal(build(&p, &rq, str_of(body), toy, &limits, &err), CLEF_OK);
    buf out = {0}, again = {0};
    buf_add_char(&out, '{');
    prompt_write(&out, &p, &rq);
    buf_add_char(&out, '}');
    assert_int_equal(buf_status(&out, NULL), CLEF_OK);
    const json *root = NULL;
    assert_int_equal(
        json_parse(&root, (str){out.p, out.n}, "encode", &(json_limits){0}, &memory, NULL),
        CLEF_OK);
    assert_true(recorded_ids_differ(recorded_get(root, "ids"), p.ids, p.n_ids) == SIZE_MAX);
    same_spans(recorded_get(root, "questions"), &rq, &p, "encode");
    const json *tokens = recorded_get(root, "tokens");
    assert_int_equal(recorded_count(tokens, "prefix"), p.n_prefix);
    assert_int_equal(recorded_count(tokens, "media"), 0);
    assert_int_equal(recorded_count(tokens, "state"), p.n_state);
    assert_int_equal(recorded_count(tokens, "schema"), p.n_schema);
    assert_int_equal(recorded_count(tokens, "suffix"), p.n_suffix);
    assert_int_equal(pyjson_write(&again, root, PYJSON_ANSWER, NULL), CLEF_OK);
    recorded_same_text((str){out.p, out.n}, (str){again.p, again.n}, "encode");
    buf_free(&again);
    buf_free(&out);
}

/* ---- control tokens -------------------------------------------------------------------------- */

/* Every added token of the release, in every place that a user fills. */
static const char *const SPELLINGS[] = {"<|endoftext|>",
                                        "<|im_start|>",
                                        "<|im_end|>",
                                        "<|object_ref_start|>",
                                        "<|object_ref_end|>",
                                        "<|box_start|>",
                                        "<|box_end|>",
                                        "<|quad_start|>",
                                        "<|quad_end|>",
                                        "<|vision_start|>",
                                        "<|vision_end|>",
                                        "<|vision_pad|>",
                                        "<|image_pad|>",
                                        "<|video_pad|>",
                                        "<tool_call>",
                                        "</tool_call>",
                                        "<|fim_prefix|>",
                                        "<|fim_middle|>",
                                        "<|fim_suffix|>",
                                        "<|fim_pad|>",
                                        "<|repo_name|>",
                                        "<|file_sep|>",
                                        "<tool_response>",
                                        "</tool_response>",
                                        "<think>",
                                        "</think>",
                                        "<|audio_start|>",
                                        "<|audio_end|>",
                                        "<tts_pad>",
                                        "<tts_text_bos>",
                                        "<tts_text_eod>",
                                        "<tts_text_bos_single>",
                                        "<|audio_pad|>"};
enum { N_SPELLINGS = sizeof SPELLINGS / sizeof SPELLINGS[0] };

static void write_spelled(char *out, size_t room, const char *spelling) {
    snprintf(out, room,
             "{\"model\":\"m\",\"state\":\"a%s b\",\"questions\":{\"x%sy\":{\"type\":\"choice\","
             "\"instructions\":{\"k\":\"%s\"},\"criteria\":{\"%s\":\"%s\",\"b\":{\"%s\":1}}},"
             "\"%s\":{\"type\":\"score\",\"criteria\":[\"%s\"]}}}",
             spelling, spelling, spelling, spelling, spelling, spelling, spelling, spelling);
}

static uint32_t count_id(const prompt *p, int32_t id) {
    uint32_t n = 0;
    for (uint32_t i = p->n_prefix; i < p->n_ids - p->n_suffix; i++) n += p->ids[i] == id;
    return n;
}

static void b27_plain_user_text_never_becomes_a_control_token(void **state) {
    (void)state;
    const prompt_limits limits = {.max_length = MANY, .control = CLEF_CONTROL_PLAIN};
    for (size_t s = 0; s < N_SPELLINGS; s++) {
        char body[1000];
        prompt p = {0};
        write_spelled(body, sizeof body, SPELLINGS[s]);
        expect_built(&p, body, &limits);
        for (size_t k = 0; k < N_SPELLINGS; k++) {
            const int32_t id = tokenizer_added_id(toy, str_of(SPELLINGS[k]));
            assert_true(id >= 0);
            assert_int_equal(count_id(&p, id), 0);
        }
    }
}

static void b27_the_reference_s_policy_makes_every_spelling_a_control_token(void **state) {
    (void)state;
    const prompt_limits limits = {.max_length = MANY, .control = CLEF_CONTROL_REFERENCE};
    for (size_t s = 0; s < N_SPELLINGS; s++) {
        char body[1000];
        prompt p = {0};
        write_spelled(body, sizeof body, SPELLINGS[s]);
        expect_built(&p, body, &limits);
        /* Eight places; the second id is its own instructions too. */
        assert_int_equal(count_id(&p, tokenizer_added_id(toy, str_of(SPELLINGS[s]))), 9);
    }
}

static void own_pieces_hold_their_control_tokens_under_every_policy(void **state) {
    (void)state;
    static const clef_control POLICIES[] = {CLEF_CONTROL_PLAIN, CLEF_CONTROL_REFERENCE,
                                            CLEF_CONTROL_REJECT};
    prompt first = {0};
    for (size_t i = 0; i < 3; i++) {
        const prompt_limits limits = {.max_length = MANY, .control = POLICIES[i]};
        prompt p = {0};
        expect_built(&p, STATE("\"no spelling, only < and |>\""), &limits);
        assert_int_equal(p.ids[0], tokenizer_added_id(toy, STR("<|im_start|>")));
        if (i == 0) first = p;
        assert_int_equal(p.n_ids, first.n_ids);
        assert_memory_equal(p.ids, first.ids, p.n_ids * sizeof *p.ids);
    }
}

static void reject_names_the_spelling_and_the_field(void **state) {
    (void)state;
    static const struct {
        const char *body, *path, *spelling;
    } ROWS[] = {
        {STATE("\"a<|im_end|>\""), "state: ", "<|im_end|>"},
        {STATE("{\"k\":[\"<think>\"]}"), "state: ", "<think>"},
        {"{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"</think>\":{\"type\":\"noul\","
         "\"instructions\":\"i\"}}}",
         "questions.</think>: ", "</think>"},
        {ONE("{\"type\":\"noul\",\"instructions\":\"<tool_call>\"}"),
         "questions.q.instructions: ", "<tool_call>"},
        {ONE("{\"type\":\"noul\",\"criteria\":{\"false\":\"<tts_pad>\"}}"),
         "questions.q.criteria.false: ", "<tts_pad>"},
        {ONE("{\"type\":\"choice\",\"criteria\":{\"a\":1,\"<|box_end|>\":2}}"),
         "questions.q.criteria.<|box_end|>: ", "<|box_end|>"},
        {ONE("{\"type\":\"score\",\"criteria\":[1,2,[\"<|im_start|>\"]]}"),
         "questions.q.criteria[2]: ", "<|im_start|>"},
    };
    const prompt_limits limits = {.max_length = MANY, .control = CLEF_CONTROL_REJECT};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        request rq = {0};
        prompt p = {0};
        clef_error err = {0};
        assert_int_equal(build(&p, &rq, str_of(ROWS[i].body), toy, &limits, &err), CLEF_ERR_INPUT);
        if (strncmp(err.text, ROWS[i].path, strlen(ROWS[i].path)) != 0 ||
            strstr(err.text + strlen(ROWS[i].path), ROWS[i].spelling) == NULL)
            fail_msg("found %s\nwanted %s ... %s", err.text, ROWS[i].path, ROWS[i].spelling);
    }
}

static void b29_a_pad_spelling_beside_a_picture_is_refused_where_it_would_count(void **state) {
    (void)state;
    const prompt_media picture = {.n_groups = 1, .n_rows = 2};
    prompt_limits limits = {
        .max_length = MANY, .control = CLEF_CONTROL_REFERENCE, .media = &picture, .n_media = 1};
    expect_refused(STATE("\"<|image_pad|>\""), &limits, CLEF_ERR_INPUT,
                   "state: the text holds a control token that stands for a picture, beside real "
                   "pictures");
    expect_refused(ONE("{\"type\":\"noul\",\"instructions\":\"<|video_pad|>\"}"), &limits,
                   CLEF_ERR_INPUT,
                   "questions.q.instructions: the text holds a control token that stands for a "
                   "picture, beside real pictures");
    prompt p = {0};
    limits.control = CLEF_CONTROL_PLAIN;
    expect_built(&p, STATE("\"<|image_pad|>\""), &limits);
    assert_int_equal(count_id(&p, tokenizer_added_id(toy, STR("<|image_pad|>"))), 2);
}

/* The toy's tokenizer without the added token `name`. */
static tokenizer *load_without(const char *name) {
    buf text = {0};
    clef_error err = {0};
    tokenizer *t = NULL;
    assert_int_equal(file_read(&text, TESTDATA "toy-r2/tokenizer.json", 1 << 20, &err), CLEF_OK);
    char *at = strstr(text.p, name);
    assert_non_null(at);
    at[1] = '#';
    if (tokenizer_parse(&t, (str){text.p, text.n}, "toy", NULL, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    buf_free(&text);
    return t;
}

static void a_tokenizer_without_a_needed_control_token_is_refused(void **state) {
    (void)state;
    static const char *const NEEDED[] = {"<|im_start|>", "<|im_end|>", "<think>", "</think>"};
    for (size_t i = 0; i < 4; i++) {
        tokenizer *t = load_without(NEEDED[i]);
        request rq = {0};
        prompt p = {0};
        clef_error err = {0};
        char wanted[200];
        snprintf(wanted, sizeof wanted, "tokenizer: no added token '%s', which every prompt needs",
                 NEEDED[i]);
        assert_int_equal(prompt_check_tokenizer(t, &err), CLEF_ERR_FORMAT);
        assert_string_equal(err.text, wanted);
        const prompt_limits limits = {.max_length = MANY};
        assert_int_equal(build(&p, &rq, STR(STATE("1")), t, &limits, &err), CLEF_ERR_FORMAT);
        tokenizer_free(t);
    }
    assert_int_equal(prompt_check_tokenizer(toy, NULL), CLEF_OK);
}

/* The ids between prefix and state, spelled: names of control tokens, else the bytes. */
static void expect_media(const prompt_media *media, uint32_t n_media, const char *wanted) {
    const prompt_limits limits = {.max_length = MANY, .media = media, .n_media = n_media};
    prompt p = {0};
    id_list ids = {0};
    expect_built(&p, STATE("\"s\""), &limits);
    assert_int_equal(tokenizer_encode(toy, str_of(wanted), CLEF_CONTROL_REFERENCE, &ids, NULL),
                     CLEF_OK);
    assert_int_equal(p.n_media, ids.n);
    assert_memory_equal(p.ids + p.n_prefix, ids.ids, ids.n * sizeof *ids.ids);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n_media; i++)
        for (uint32_t g = 0; g < media[i].n_groups; g++, k++) {
            const prompt_picture *at = &p.pictures[k];
            const str pad = media[i].seconds == NULL ? STR("<|image_pad|>") : STR("<|video_pad|>");
            assert_int_equal(at->item, i);
            assert_int_equal(at->group, g);
            assert_int_equal(at->n_rows, media[i].n_rows);
            for (uint32_t r = 0; r < at->n_rows; r++)
                assert_int_equal(p.ids[at->begin + r], tokenizer_added_id(toy, pad));
            assert_int_not_equal(p.ids[at->begin - 1], tokenizer_added_id(toy, pad));
            assert_int_not_equal(p.ids[at->begin + at->n_rows], tokenizer_added_id(toy, pad));
        }
    assert_int_equal(p.n_pictures, k);
    id_list_free(&ids);
}

#define START "<|vision_start|>"
#define END "<|vision_end|>"
#define IMAGES(pads) START pads END
#define GROUP(time, pads) "<" time " seconds>" START pads END

static void pictures_stand_side_by_side_before_one_line_feed(void **state) {
    (void)state;
    expect_media((prompt_media[]){{.n_groups = 1, .n_rows = 1}, {.n_groups = 1, .n_rows = 2}}, 2,
                 IMAGES("<|image_pad|>") IMAGES("<|image_pad|><|image_pad|>") "\n");
}

static void a_video_has_a_time_before_each_group_and_markers_around_all(void **state) {
    (void)state;
    const double seconds[] = {(0.0 / 24 + 8.0 / 24) / 2, (15.0 / 24 + 23.0 / 24) / 2};
    expect_media((prompt_media[]){{.n_groups = 2, .n_rows = 2, .seconds = seconds}}, 1,
                 START GROUP("0.2", "<|video_pad|><|video_pad|>")
                     GROUP("0.8", "<|video_pad|><|video_pad|>") END "\n");
}

static void times_are_rounded_by_their_exact_value(void **state) {
    (void)state;
    const double seconds[] = {0.0, 0.05, 0.15, 0.25, 0.75, 0.35, 9.95, 12.25, 99.96, 1234567.85};
    expect_media((prompt_media[]){{.n_groups = 10, .n_rows = 1, .seconds = seconds}}, 1,
                 START GROUP("0.0", "<|video_pad|>") GROUP("0.1", "<|video_pad|>")
                     GROUP("0.1", "<|video_pad|>") GROUP("0.2", "<|video_pad|>")
                         GROUP("0.8", "<|video_pad|>") GROUP("0.3", "<|video_pad|>")
                             GROUP("9.9", "<|video_pad|>") GROUP("12.2", "<|video_pad|>")
                                 GROUP("100.0", "<|video_pad|>") GROUP("1234567.9", "<|video_pad|>")
                                     END "\n");
}

static void a_time_that_is_none_is_refused(void **state) {
    (void)state;
    const struct {
        double seconds;
        const char *sentence;
    } wrong[] = {{-1.0, "videos: a frame stands at -1 seconds, wanted 0 to 1e+12"},
                 {1e300, "videos: a frame stands at 1e+300 seconds, wanted 0 to 1e+12"},
                 {(double)INFINITY, "videos: a frame stands at inf seconds, wanted 0 to 1e+12"}};
    for (int i = 0; i < 3; i++) {
        const prompt_media video = {.n_groups = 1, .n_rows = 1, .seconds = &wrong[i].seconds};
        const prompt_limits limits = {.max_length = MANY, .media = &video, .n_media = 1};
        expect_refused(STATE("1"), &limits, CLEF_ERR_INPUT, wrong[i].sentence);
    }
}

static void pictures_beyond_the_limit_are_refused_before_they_are_laid_out(void **state) {
    (void)state;
    const prompt_media picture = {.n_groups = UINT32_MAX, .n_rows = UINT32_MAX};
    const prompt_limits limits = {.max_length = 16384, .media = &picture, .n_media = 1};
    expect_refused(STATE("1"), &limits, CLEF_ERR_LIMIT,
                   "images, videos: they take 18446744065119617025 tokens, the limit of a record "
                   "is 16384; smaller or fewer ones take less");
}

static void a_tokenizer_without_the_picture_tokens_serves_text_alone(void **state) {
    (void)state;
    const prompt_media picture = {.n_groups = 1, .n_rows = 1};
    tokenizer *t = load_without("<|image_pad|>");
    request rq = {0};
    prompt p = {0};
    clef_error err = {0};
    prompt_limits limits = {.max_length = MANY};
    assert_int_equal(build(&p, &rq, STR(STATE("1")), t, &limits, &err), CLEF_OK);
    limits.media = &picture;
    limits.n_media = 1;
    assert_int_equal(build(&p, &rq, STR(STATE("1")), t, &limits, &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "<|image_pad|>"));
    tokenizer_free(t);
}

/* ---- length ---------------------------------------------------------------------------------- */

#define DIGITS "\"0123456789\"" /* ten tokens */

static void same_as_start(const prompt *cut, const prompt *whole, uint32_t n_state) {
    const uint32_t before = whole->n_prefix, missing = whole->n_state - n_state;
    assert_int_equal(cut->n_state, n_state);
    assert_int_equal(cut->n_state_cut, missing);
    assert_int_equal(cut->n_ids, whole->n_ids - missing);
    assert_memory_equal(cut->ids, whole->ids, (before + n_state) * sizeof *cut->ids);
    assert_memory_equal(cut->ids + before + n_state, whole->ids + before + whole->n_state,
                        (whole->n_schema + whole->n_suffix) * sizeof *cut->ids);
    assert_int_equal(cut->instructions[0].begin, whole->instructions[0].begin - missing);
    assert_int_equal(cut->options[1].end, whole->options[1].end - missing);
}

static void the_state_is_cut_from_its_end_to_the_limit(void **state) {
    (void)state;
    prompt_limits limits = {.max_length = MANY, .truncate = CLEF_TRUNCATE_STATE};
    prompt whole = {0};
    expect_built(&whole, STATE(DIGITS), &limits);
    assert_int_equal(whole.n_state, 10);
    const uint32_t fixed = whole.n_ids - 10;
    for (uint32_t n = 0; n <= 10; n++) {
        prompt p = {0};
        limits.max_length = fixed + n;
        expect_built(&p, STATE(DIGITS), &limits);
        same_as_start(&p, &whole, n);
    }
}

static void without_leave_to_cut_the_sentence_names_both_numbers(void **state) {
    (void)state;
    prompt_limits limits = {.max_length = MANY};
    prompt whole = {0};
    expect_built(&whole, STATE(DIGITS), &limits);
    limits.max_length = whole.n_ids;
    expect_built(&whole, STATE(DIGITS), &limits);
    limits.max_length = whole.n_ids - 1;
    char sentence[200];
    snprintf(sentence, sizeof sentence,
             "state: the record needs %u tokens, the limit is %u; shorten the state, allow it to "
             "be cut or raise the limit",
             whole.n_ids, whole.n_ids - 1);
    expect_refused(STATE(DIGITS), &limits, CLEF_ERR_LIMIT, sentence);
}

static void b34_a_schema_that_alone_is_too_long_is_refused_in_the_reference_s_words(void **state) {
    (void)state;
    static const clef_truncate MODES[] = {CLEF_TRUNCATE_NONE, CLEF_TRUNCATE_STATE};
    prompt whole = {0};
    expect_built(&whole, STATE("\"\""), &(prompt_limits){.max_length = MANY});
    char sentence[200];
    snprintf(sentence, sizeof sentence,
             "questions: schema requires %u tokens before state; maximum is %u (%u of them are the "
             "questions')",
             whole.n_ids, whole.n_ids - 1, whole.n_schema);
    for (size_t i = 0; i < 2; i++) {
        prompt_limits limits = {.max_length = whole.n_ids - 1, .truncate = MODES[i]};
        expect_refused(STATE("\"\""), &limits, CLEF_ERR_LIMIT, sentence);
        expect_refused(STATE(DIGITS), &limits, CLEF_ERR_LIMIT, sentence);
        limits.max_length = whole.n_ids;
        expect_built(&whole, STATE("\"\""), &limits);
        assert_int_equal(whole.n_state, 0);
    }
}

static void a_cap_on_the_state_cuts_in_both_modes(void **state) {
    (void)state;
    static const clef_truncate MODES[] = {CLEF_TRUNCATE_NONE, CLEF_TRUNCATE_STATE};
    static const uint32_t CAPS[] = {0, 1, 7, 10, 11};
    prompt whole = {0};
    expect_built(&whole, STATE(DIGITS), &(prompt_limits){.max_length = MANY});
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof CAPS / sizeof CAPS[0]; k++) {
            const prompt_limits limits = {.max_length = MANY,
                                          .cap_state = true,
                                          .max_state_tokens = CAPS[k],
                                          .truncate = MODES[i]};
            prompt p = {0};
            expect_built(&p, STATE(DIGITS), &limits);
            same_as_start(&p, &whole, CAPS[k] > 10 ? 10 : CAPS[k]);
        }
}

static void a_cap_above_the_room_does_not_allow_to_cut_further(void **state) {
    (void)state;
    prompt whole = {0};
    expect_built(&whole, STATE(DIGITS), &(prompt_limits){.max_length = MANY});
    const uint32_t fixed = whole.n_ids - 10;
    prompt_limits limits = {.max_length = fixed + 6, .cap_state = true, .max_state_tokens = 7};
    char sentence[200];
    snprintf(sentence, sizeof sentence,
             "state: the record needs %u tokens, the limit is %u; shorten the state, allow it to "
             "be cut or raise the limit",
             fixed + 7, fixed + 6);
    expect_refused(STATE(DIGITS), &limits, CLEF_ERR_LIMIT, sentence);
    limits.truncate = CLEF_TRUNCATE_STATE;
    prompt p = {0};
    expect_built(&p, STATE(DIGITS), &limits);
    same_as_start(&p, &whole, 6);
}

static void b22_five_thousand_questions_are_refused_with_the_count(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":\"s\",\"questions\":{");
    for (unsigned i = 0; i < 5000; i++)
        buf_printf(&body, "%s\"q%u\":{\"type\":\"noul\"}", i > 0 ? "," : "", i);
    buf_add_text(&body, "}}");
    request rq = {0};
    prompt p = {0};
    clef_error err = {0};
    prompt_limits limits = {.max_length = MANY};
    assert_int_equal(build(&p, &rq, (str){body.p, body.n}, toy, &limits, &err), CLEF_OK);
    limits.max_length = 16384;
    assert_int_equal(prompt_build(&(prompt){0}, &rq, toy, &limits, &memory, &err), CLEF_ERR_LIMIT);
    char sentence[100];
    snprintf(sentence, sizeof sentence,
             "questions: schema requires %u tokens before state; maximum"
             " is 16384 ",
             p.n_ids - p.n_state);
    assert_memory_equal(err.text, sentence, strlen(sentence));
    buf_free(&body);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    request rq = {0};
    const double seconds[] = {0.5};
    const prompt_media media[] = {{.n_groups = 1, .n_rows = 40},
                                  {.n_groups = 1, .n_rows = 2, .seconds = seconds}};
    const prompt_limits limits = {.max_length = MANY, .media = media, .n_media = 2};
    assert_int_equal(
        request_parse(&rq, STR(ONE("{\"type\":\"score\",\"criteria\":[{\"b\":1,\"a\":2},2]}")),
                      &memory, NULL),
        CLEF_OK);
    unsigned n = 0;
    for (clef_status s = CLEF_ERR_MEMORY; s != CLEF_OK;) {
        arena mem = {0};
        prompt p = {0};
        oom_fail_at(++n);
        s = prompt_build(&p, &rq, toy, &limits, &mem, NULL);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
        arena_free(&mem);
    }
    assert_true(n > 5);
}

int main(void) {
#define T(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        T(ids_and_spans_equal_the_reference_s),
        T(what_encode_prints_holds_the_ids_and_spans_in_python_s_spelling),
        T(b27_plain_user_text_never_becomes_a_control_token),
        T(b27_the_reference_s_policy_makes_every_spelling_a_control_token),
        T(own_pieces_hold_their_control_tokens_under_every_policy),
        T(reject_names_the_spelling_and_the_field),
        T(b29_a_pad_spelling_beside_a_picture_is_refused_where_it_would_count),
        T(a_tokenizer_without_a_needed_control_token_is_refused),
        T(pictures_stand_side_by_side_before_one_line_feed),
        T(a_video_has_a_time_before_each_group_and_markers_around_all),
        T(times_are_rounded_by_their_exact_value),
        T(a_time_that_is_none_is_refused),
        T(pictures_beyond_the_limit_are_refused_before_they_are_laid_out),
        T(a_tokenizer_without_the_picture_tokens_serves_text_alone),
        T(the_state_is_cut_from_its_end_to_the_limit),
        T(without_leave_to_cut_the_sentence_names_both_numbers),
        T(b34_a_schema_that_alone_is_too_long_is_refused_in_the_reference_s_words),
        T(a_cap_on_the_state_cuts_in_both_modes),
        T(a_cap_above_the_room_does_not_allow_to_cut_further),
        T(b22_five_thousand_questions_are_refused_with_the_count),
        T(every_failed_allocation_is_reported_and_leaks_nothing),
    };
#undef T
    return cmocka_run_group_tests(tests, open_toy, close_toy);
}
