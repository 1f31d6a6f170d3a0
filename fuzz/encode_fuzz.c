/* encode_fuzz.c - any text to ids, with a toy tokenizer of each split pattern.
 *
 * The first byte chooses the tokenizer, the rest is text. Invalid UTF-8 must be refused at the byte
 * that utf8_check names. Else: the ids spell the text, that is its NFC between added tokens; plain
 * gives base ids alone, which spell the NFC of the whole; reject refuses exactly what has an added
 * token. */
#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/utf8.h"
#include "text/json.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { N_TOYS = 2, ALPHABET = 0x144 };

/* A tokenizer and what its file says each id stands for. */
typedef struct {
    tokenizer *tokenizer;
    arena mem;
    str *spelled; /* by id: the bytes of an entry, the content of an added token */
    int32_t n_vocab;
} toy;

static toy toys[N_TOYS];

static void fill_alphabet(unsigned char *byte_of) {
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool as_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
                               (byte >= 174 && byte <= 255);
        byte_of[as_itself ? byte : next++] = (unsigned char)byte;
    }
}

static str spelled_bytes(arena *mem, str spelling) {
    unsigned char byte_of[ALPHABET];
    fill_alphabet(byte_of);
    char *bytes = arena_alloc_small(mem, spelling.n);
    assert(bytes != NULL);
    size_t n = 0;
    for (size_t at = 0; at < spelling.n;) {
        uint32_t point = 0;
        at += utf8_decode(&point, spelling.p + at, spelling.n - at);
        bytes[n++] = (char)byte_of[point];
    }
    return (str){bytes, n};
}

static void load_toy(toy *t, const char *path) {
    buf text = {0};
    const json *root = NULL;
    if (file_read(&text, path, 1 << 20, NULL) != CLEF_OK ||
        json_parse(&root, (str){text.p, text.n}, path, &(json_limits){0}, &t->mem, NULL) !=
            CLEF_OK ||
        tokenizer_load(&t->tokenizer, path, NULL, NULL) != CLEF_OK)
        abort();
    buf_free(&text);
    const tokenizer_facts facts = tokenizer_describe(t->tokenizer);
    t->n_vocab = (int32_t)facts.n_vocab;
    t->spelled = arena_alloc(&t->mem, facts.max_id + 1, sizeof *t->spelled);
    assert(t->spelled != NULL);
    const json *vocab = json_get(json_get(root, STR("model")), STR("vocab"));
    for (const json *entry = vocab->first; entry != NULL; entry = entry->next) {
        uint64_t id = 0;
        const bool good = json_u64(&id, entry, facts.max_id);
        assert(good);
        t->spelled[id] = spelled_bytes(&t->mem, entry->name);
    }
    const json *added = json_get(root, STR("added_tokens"));
    for (const json *v = added->first; v != NULL; v = v->next) {
        const str content = json_get(v, STR("content"))->text;
        t->spelled[tokenizer_added_id(t->tokenizer, content)] = content;
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    load_toy(&toys[0], TESTDATA "toy-r1-tied/tokenizer.json");
    load_toy(&toys[1], TESTDATA "toy-r2/tokenizer.json");
    return 0;
}

/* Whether the base ids ids[0 .. n) spell the NFC of `text`. */
static bool spells(const toy *t, const int32_t *ids, size_t n, str text) {
    buf wanted = {0};
    const clef_status s = unicode_nfc(&wanted, text, NULL);
    assert(s == CLEF_OK);
    size_t at = 0;
    bool same = true;
    for (size_t i = 0; i < n && same; i++) {
        const str bytes = t->spelled[ids[i]];
        same = bytes.n <= wanted.n - at && memcmp(wanted.p + at, bytes.p, bytes.n) == 0;
        at += bytes.n;
    }
    same = same && at == wanted.n;
    buf_free(&wanted);
    return same;
}

static void check_plain(const toy *t, str text) {
    id_list ids = {0};
    const clef_status s = tokenizer_encode(t->tokenizer, text, CLEF_CONTROL_PLAIN, &ids, NULL);
    assert(s == CLEF_OK);
    for (size_t i = 0; i < ids.n; i++) assert(ids.ids[i] >= 0 && ids.ids[i] < t->n_vocab);
    assert(spells(t, ids.ids, ids.n, text));
    id_list_free(&ids);
}

/* Where `content` stands next at or after `at`; text.n or near it when it does not. */
static size_t find(str text, size_t at, str content) {
    while (at + content.n <= text.n && memcmp(text.p + at, content.p, content.n) != 0) at++;
    return at;
}

/* The ids between two added tokens spell the text between them. An added token stands where its
 * content is found next: the leftmost match wins, so no content begins before it. True when there
 * is one. */
static bool check_reference(const toy *t, str text) {
    id_list ids = {0};
    const clef_status s = tokenizer_encode(t->tokenizer, text, CLEF_CONTROL_REFERENCE, &ids, NULL);
    assert(s == CLEF_OK);
    size_t at = 0, first = 0;
    bool any = false;
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.ids[i] < t->n_vocab) continue;
        any = true;
        const str content = t->spelled[ids.ids[i]];
        const size_t found = find(text, at, content);
        assert(found + content.n <= text.n);
        assert(spells(t, ids.ids + first, i - first, (str){text.p + at, found - at}));
        at = found + content.n;
        first = i + 1;
    }
    assert(spells(t, ids.ids == NULL ? NULL : ids.ids + first, ids.n - first,
                  (str){text.p + at, text.n - at}));
    id_list_free(&ids);
    return any;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    const toy *t = &toys[data[0] % N_TOYS];
    const str text = {(const char *)data + 1, n - 1};
    id_list ids = {0};
    clef_error err = {0};
    const clef_status rejected =
        tokenizer_encode(t->tokenizer, text, CLEF_CONTROL_REJECT, &ids, &err);
    id_list_free(&ids);
    if (utf8_check(text.p, text.n) < text.n) {
        assert(rejected == CLEF_ERR_INPUT);
        assert(strstr(err.text, "invalid UTF-8 at byte ") == err.text);
        return 0;
    }
    check_plain(t, text);
    const bool has_added = check_reference(t, text);
    assert(rejected == (has_added ? CLEF_ERR_INPUT : CLEF_OK));
    return 0;
}
