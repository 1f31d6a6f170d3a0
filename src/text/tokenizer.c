/* tokenizer.c - loads tokenizer.json; one piece of text to ids.
 *
 * Order of work on a piece:
 *   1 added tokens, found in the raw text: leftmost, of those the longest; each is one id
 *   2 every stretch between them: NFC (unicode)
 *   3 cut by the pattern the file states (split)
 *   4 each cut to ids by the merges (bpe)
 *
 * The traps: step 1 comes before NFC and acts inside words. Under CLEF_CONTROL_PLAIN it is left out
 * altogether, so the longest stretch is the whole text; merges give ids of the base vocabulary
 * alone, so no added token can come out. The end of a stretch is an end of text for the pattern.
 *
 * A file is taken only if the reference would do exactly this with it; whatever else it asks for
 * (another normaliser, a prefix space, dropout, stripping tokens, ...) is refused with its path in
 * the file. Truncation, padding, post-processor and decoder never act on the ids asked for here. */
#include "text/tokenizer.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/json.h"
#include "text/split.h"
#include "text/unicode.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define MAX_TREE_BYTES ((size_t)1 << 30) /* of a parsed file; the released one takes 0.13 GB */
enum { MAX_DEPTH = 32, MAX_ADDED_BYTES = 255, N_BYTES = 256 };

typedef struct {
    str content;
    int32_t id;
} added_token;

struct tokenizer {
    tokenizer_facts facts;
    bpe *bpe;
    arena mem;            /* holds the added tokens */
    added_token *added;   /* [facts.n_added], by content */
    bool starts[N_BYTES]; /* whether a content begins with this byte */
    int only_start;       /* the one byte that all contents begin with, or -1 */
};

/* ---- ids ---------------------------------------------------------------------------------- */

clef_status id_list_add(id_list *list, const int32_t *ids, size_t n, clef_error *err) {
    if (list->cap - list->n < n) {
        size_t least, cap, bytes;
        if (!size_add(&least, list->n, n) || !size_mul(&cap, least, 2) ||
            !size_mul(&bytes, cap, sizeof *ids))
            return clef_fail_memory(err);
        int32_t *grown = realloc(list->ids, bytes);
        if (grown == NULL) return clef_fail_memory(err);
        list->ids = grown;
        list->cap = cap;
    }
    if (n > 0) memcpy(list->ids + list->n, ids, n * sizeof *ids);
    list->n += n;
    return CLEF_OK;
}

void id_list_free(id_list *list) {
    free(list->ids);
    *list = (id_list){0};
}

/* ---- encoding ----------------------------------------------------------------------------- */

/* The first of added[low .. high) whose content has at `depth` a byte of at least `least`. All of
 * them are longer than `depth` and equal before it. */
static size_t lower_bound(const added_token *added, size_t low, size_t high, size_t depth,
                          unsigned least) {
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if ((unsigned char)added[mid].content.p[depth] < least)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The longest added token that `text` begins with, or NULL. */
static const added_token *match(const tokenizer *t, str text) {
    const added_token *longest = NULL;
    size_t low = 0, high = t->facts.n_added; /* what agrees with the text so far */
    for (size_t depth = 0; depth < text.n && low < high; depth++) {
        const unsigned byte = (unsigned char)text.p[depth];
        low = lower_bound(t->added, low, high, depth, byte);
        high = lower_bound(t->added, low, high, depth, byte + 1);
        if (low < high && t->added[low].content.n == depth + 1) longest = &t->added[low++];
    }
    return longest;
}

/* The first added token at or after `at`, with its offset in *found; NULL when there is none. */
static const added_token *find_added(const tokenizer *t, str text, size_t at, size_t *found) {
    while (at < text.n) {
        if (t->only_start >= 0) {
            const char *p = memchr(text.p + at, t->only_start, text.n - at);
            if (p == NULL) return NULL;
            at = (size_t)(p - text.p);
        }
        if (t->starts[(unsigned char)text.p[at]]) {
            const added_token *a = match(t, (str){text.p + at, text.n - at});
            if (a != NULL) {
                *found = at;
                return a;
            }
        }
        at++;
    }
    return NULL;
}

/* Steps 2 to 4 for text without added tokens. */
static clef_status encode_stretch(const tokenizer *t, str text, id_list *out, clef_error *err) {
    buf nfc = {0};
    clef_status s = CLEF_OK;
    if (t->facts.normalizes && !unicode_is_nfc(text)) {
        s = unicode_nfc(&nfc, text, err);
        text = (str){nfc.p, nfc.n};
    }
    for (size_t at = 0; s == CLEF_OK && at < text.n;) {
        const size_t end = split_next(t->facts.used, text, at);
        s = bpe_encode(t->bpe, (str){text.p + at, end - at}, out, err);
        at = end;
    }
    buf_free(&nfc);
    return s;
}

static clef_status encode(const tokenizer *t, str text, clef_control control, id_list *out,
                          clef_error *err) {
    if (control == CLEF_CONTROL_PLAIN) return encode_stretch(t, text, out, err);
    size_t at = 0, found;
    for (const added_token *a; (a = find_added(t, text, at, &found)) != NULL;) {
        if (control == CLEF_CONTROL_REJECT)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "the control token '%.*s' stands at byte %zu of the text",
                             STR_ARG(a->content), found);
        TRY(encode_stretch(t, (str){text.p + at, found - at}, out, err));
        TRY(id_list_add(out, &a->id, 1, err));
        at = found + a->content.n;
    }
    return encode_stretch(t, (str){text.p + at, text.n - at}, out, err);
}

clef_status tokenizer_encode(const tokenizer *t, str text, clef_control control, id_list *out,
                             clef_error *err) {
    if (text.n == 0) return CLEF_OK;
    const size_t valid = utf8_check(text.p, text.n);
    if (valid < text.n)
        return clef_fail(err, CLEF_ERR_INPUT, "invalid UTF-8 at byte %zu of the text", valid);
    const size_t before = out->n;
    const clef_status s = encode(t, text, control, out, err);
    if (s != CLEF_OK) out->n = before;
    return s;
}

/* ---- loading ------------------------------------------------------------------------------ */

static bool is_text(const json *v, str wanted) {
    return v != NULL && v->kind == JSON_STRING && str_equal(v->text, wanted);
}

static bool is_kind(const json *v, json_kind kind) {
    return v != NULL && v->kind == kind;
}

static bool is_null_or_absent(const json *v) {
    return v == NULL || v->kind == JSON_NULL;
}

/* What stands at a place, for an error sentence. */
static str found_name(const json *v) {
    if (v == NULL) return STR("nothing");
    if (v->kind == JSON_STRING) return v->text;
    return str_of(json_kind_name(v));
}

static clef_status refuse(const char *label, const char *path, const json *found,
                          const char *wanted, clef_error *err) {
    const str name = found_name(found);
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s: found '%.*s', wanted %s", label, path,
                     STR_ARG(name), wanted);
}

static clef_status load_normalizer(tokenizer *t, const json *root, const char *label,
                                   clef_error *err) {
    const json *normalizer = json_get(root, STR("normalizer"));
    if (is_null_or_absent(normalizer)) return CLEF_OK;
    const json *type = json_get(normalizer, STR("type"));
    if (!is_text(type, STR("NFC"))) return refuse(label, "normalizer.type", type, "NFC", err);
    t->facts.normalizes = true;
    return CLEF_OK;
}

static clef_status load_split(tokenizer *t, const json *split, const char *label, clef_error *err) {
    const json *type = json_get(split, STR("type"));
    if (!is_text(type, STR("Split")))
        return refuse(label, "pre_tokenizer.pretokenizers[0].type", type, "Split", err);
    const json *behavior = json_get(split, STR("behavior"));
    if (!is_text(behavior, STR("Isolated")))
        return refuse(label, "pre_tokenizer.pretokenizers[0].behavior", behavior, "Isolated", err);
    const json *invert = json_get(split, STR("invert"));
    if (!is_kind(invert, JSON_FALSE))
        return refuse(label, "pre_tokenizer.pretokenizers[0].invert", invert, "false", err);
    const json *regex = json_get(json_get(split, STR("pattern")), STR("Regex"));
    if (!is_kind(regex, JSON_STRING) || !split_recognise(&t->facts.stated, regex->text))
        return refuse(label, "pre_tokenizer.pretokenizers[0].pattern.Regex", regex,
                      "the pattern of Qwen2 or of Qwen3.5", err);
    return CLEF_OK;
}

static clef_status check_byte_level(const json *byte_level, const char *label, clef_error *err) {
    const json *type = json_get(byte_level, STR("type"));
    if (!is_text(type, STR("ByteLevel")))
        return refuse(label, "pre_tokenizer.pretokenizers[1].type", type, "ByteLevel", err);
    const json *prefix = json_get(byte_level, STR("add_prefix_space"));
    if (!is_kind(prefix, JSON_FALSE))
        return refuse(label, "pre_tokenizer.pretokenizers[1].add_prefix_space", prefix, "false",
                      err);
    const json *regex = json_get(byte_level, STR("use_regex")); /* absent means true */
    if (!is_kind(regex, JSON_FALSE))
        return refuse(label, "pre_tokenizer.pretokenizers[1].use_regex", regex, "false", err);
    return CLEF_OK;
}

static clef_status load_pre_tokenizer(tokenizer *t, const json *root, const char *label,
                                      clef_error *err) {
    const json *pre = json_get(root, STR("pre_tokenizer"));
    const json *type = json_get(pre, STR("type"));
    if (!is_text(type, STR("Sequence")))
        return refuse(label, "pre_tokenizer.type", type, "Sequence", err);
    const json *list = json_get(pre, STR("pretokenizers"));
    if (!is_kind(list, JSON_ARRAY) || list->n != 2)
        return refuse(label, "pre_tokenizer.pretokenizers", list, "[Split, ByteLevel]", err);
    TRY(load_split(t, list->first, label, err));
    return check_byte_level(list->first->next, label, err);
}

/* What would make the reference's model do something else than bpe.c does. */
static clef_status check_model(const json *model, const char *label, clef_error *err) {
    static const struct {
        str name;
        const char *path;
        enum { NULL_ONLY, NULL_OR_EMPTY, FALSE_ONLY } rule;
        const char *wanted;
    } rules[] = {
        {STR("dropout"), "model.dropout", NULL_ONLY, "null"},
        {STR("unk_token"), "model.unk_token", NULL_ONLY, "null"},
        {STR("continuing_subword_prefix"), "model.continuing_subword_prefix", NULL_OR_EMPTY,
         "null or an empty text"},
        {STR("end_of_word_suffix"), "model.end_of_word_suffix", NULL_OR_EMPTY,
         "null or an empty text"},
        {STR("fuse_unk"), "model.fuse_unk", FALSE_ONLY, "false"},
        {STR("byte_fallback"), "model.byte_fallback", FALSE_ONLY, "false"},
        {STR("ignore_merges"), "model.ignore_merges", FALSE_ONLY, "false"},
    };
    if (!is_kind(model, JSON_OBJECT)) return refuse(label, "model", model, "an object", err);
    const json *type = json_get(model, STR("type")); /* older files omit it */
    if (type != NULL && !is_text(type, STR("BPE")))
        return refuse(label, "model.type", type, "BPE", err);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const json *v = json_get(model, rules[i].name);
        const bool good =
            v == NULL ||
            (rules[i].rule == FALSE_ONLY ? v->kind == JSON_FALSE : v->kind == JSON_NULL) ||
            (rules[i].rule == NULL_OR_EMPTY && is_text(v, STR("")));
        if (!good) return refuse(label, rules[i].path, v, rules[i].wanted, err);
    }
    return CLEF_OK;
}

static clef_status load_added_token(tokenizer *t, const json *v, uint32_t index, const char *label,
                                    clef_error *err) {
    static const str flags[] = {STR("normalized"), STR("lstrip"), STR("rstrip"),
                                STR("single_word")};
    const json *content = json_get(v, STR("content"));
    if (!is_kind(content, JSON_STRING) || content->text.n == 0 || content->text.n > MAX_ADDED_BYTES)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: added_tokens[%u].content: wanted a text of 1 to %d bytes", label,
                         index, MAX_ADDED_BYTES);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const json *flag = json_get(v, flags[i]);
        if (!is_kind(flag, JSON_FALSE))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: added_tokens[%u].%s of '%.*s' is not false, wanted false", label,
                             index, flags[i].p, STR_ARG(content->text));
    }
    /* The reference numbers added tokens itself, from the end of the vocabulary on. */
    const uint32_t wanted = t->facts.n_vocab + index;
    uint64_t id;
    if (!json_u64(&id, json_get(v, STR("id")), INT32_MAX) || id != wanted)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: added_tokens[%u].id of '%.*s': wanted %u",
                         label, index, STR_ARG(content->text), wanted);
    const str copy = arena_copy(&t->mem, content->text);
    if (copy.p == NULL) return clef_fail_memory(err);
    t->added[index] = (added_token){copy, (int32_t)wanted};
    return CLEF_OK;
}

static int compare_added(const void *a, const void *b) {
    const added_token *left = a, *right = b;
    return str_compare(left->content, right->content);
}

/* Sorts the added tokens, refuses doubles, notes the bytes they begin with. */
static clef_status index_added(tokenizer *t, const char *label, clef_error *err) {
    const uint32_t n = t->facts.n_added;
    if (n > 0) qsort(t->added, n, sizeof *t->added, compare_added);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && str_equal(t->added[i - 1].content, t->added[i].content))
            return clef_fail(err, CLEF_ERR_FORMAT, "%s: added_tokens: '%.*s' stands there twice",
                             label, STR_ARG(t->added[i].content));
        t->starts[(unsigned char)t->added[i].content.p[0]] = true;
    }
    int n_starts = 0;
    t->only_start = -1;
    for (int byte = 0; byte < N_BYTES; byte++) {
        if (!t->starts[byte]) continue;
        n_starts++;
        t->only_start = byte;
    }
    if (n_starts > 1) t->only_start = -1;
    return CLEF_OK;
}

/* The reference gives an added token that is an entry of the vocabulary too the entry's id. */
static clef_status check_disjoint(const tokenizer *t, const json *vocab, const char *label,
                                  clef_error *err) {
    for (const json *entry = vocab->first; entry != NULL; entry = entry->next) {
        const added_token *a = match(t, entry->name);
        if (a != NULL && a->content.n == entry->name.n)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: added_tokens: '%.*s' is an entry of model.vocab too", label,
                             STR_ARG(a->content));
    }
    return CLEF_OK;
}

static clef_status load_added(tokenizer *t, const json *root, const json *vocab, const char *label,
                              clef_error *err) {
    const json *list = json_get(root, STR("added_tokens"));
    if (!is_kind(list, JSON_ARRAY)) return refuse(label, "added_tokens", list, "an array", err);
    if (list->n > (uint32_t)INT32_MAX - t->facts.n_vocab)
        return refuse(label, "added_tokens", list, "fewer of them", err);
    t->added = arena_alloc(&t->mem, list->n, sizeof *t->added);
    if (t->added == NULL) return clef_fail_memory(err);
    uint32_t index = 0;
    for (const json *v = list->first; v != NULL; v = v->next)
        TRY(load_added_token(t, v, index++, label, err));
    t->facts.n_added = list->n;
    t->facts.max_id = t->facts.n_vocab + list->n - 1;
    TRY(index_added(t, label, err));
    return check_disjoint(t, vocab, label, err);
}

static clef_status load(tokenizer *t, const json *root, const char *label, clef_error *err) {
    if (root->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s, wanted an object", label,
                         json_kind_name(root));
    TRY(load_normalizer(t, root, label, err));
    TRY(load_pre_tokenizer(t, root, label, err));
    const json *model = json_get(root, STR("model"));
    TRY(check_model(model, label, err));
    const json *vocab = json_get(model, STR("vocab"));
    TRY(bpe_load(&t->bpe, vocab, json_get(model, STR("merges")), label, err));
    t->facts.n_vocab = bpe_n_tokens(t->bpe);
    t->facts.n_merges = bpe_n_merges(t->bpe);
    t->facts.n_unreachable = bpe_n_unreachable(t->bpe);
    return load_added(t, root, vocab, label, err);
}

/* Which pattern to use; the file's own unless overridden. */
static clef_status choose_pattern(tokenizer *t, const char *pattern_override, clef_error *err) {
    t->facts.used = t->facts.stated;
    if (pattern_override == NULL) return CLEF_OK;
    for (split_pattern p = SPLIT_QWEN2; p <= SPLIT_QWEN35; p++) {
        if (strcmp(pattern_override, split_name(p)) == 0) {
            t->facts.used = p;
            return CLEF_OK;
        }
    }
    return clef_fail(err, CLEF_ERR_INPUT, "split pattern '%s', wanted qwen2 or qwen35",
                     pattern_override);
}

/* A file that is no JSON, or nested too deeply, is a fault of the model, not of a request. */
static clef_status parse_tree(const json **root, str text, const char *label, arena *tree,
                              clef_error *err) {
    const json_limits limits = {.max_depth = MAX_DEPTH, .duplicates = JSON_REFUSE_DUPLICATES};
    clef_status s = json_parse(root, text, label, &limits, tree, err);
    if (s == CLEF_ERR_INPUT || s == CLEF_ERR_LIMIT) {
        s = CLEF_ERR_FORMAT;
        if (err != NULL) err->status = s;
    }
    return s;
}

clef_status tokenizer_parse(tokenizer **out, str text, const char *label,
                            const char *pattern_override, clef_error *err) {
    if (text.n > MAX_FILE_BYTES)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu bytes, the limit is %zu", label, text.n,
                         MAX_FILE_BYTES);
    tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL) return clef_fail_memory(err);
    arena tree = {.max_bytes = MAX_TREE_BYTES};
    const json *root = NULL;
    clef_status s = parse_tree(&root, text, label, &tree, err);
    if (s == CLEF_OK) s = load(t, root, label, err);
    if (s == CLEF_OK) s = choose_pattern(t, pattern_override, err);
    arena_free(&tree);
    if (s != CLEF_OK) {
        tokenizer_free(t);
        return s;
    }
    *out = t;
    return CLEF_OK;
}

clef_status tokenizer_load(tokenizer **out, const char *path, const char *pattern_override,
                           clef_error *err) {
    buf text = {0};
    clef_status s = file_read(&text, path, MAX_FILE_BYTES, err);
    if (s == CLEF_OK) s = tokenizer_parse(out, (str){text.p, text.n}, path, pattern_override, err);
    buf_free(&text);
    return s;
}

void tokenizer_free(tokenizer *t) {
    if (t == NULL) return;
    bpe_free(t->bpe);
    arena_free(&t->mem);
    free(t);
}

tokenizer_facts tokenizer_describe(const tokenizer *t) {
    return t->facts;
}

int32_t tokenizer_added_id(const tokenizer *t, str content) {
    const added_token *a = match(t, content);
    return a != NULL && a->content.n == content.n ? a->id : -1;
}
