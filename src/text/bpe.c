/* bpe.c - byte-level BPE: vocabulary, merge ranks, the merge loop.
 *
 * In: the bytes of one piece.  Out: ids. The rule: one id per byte; then, of all adjacent pairs
 * that have a rank, the lowest rank and of equal ranks the leftmost becomes its merged id, until no
 * pair has a rank. Rank is the index in the merges; a pair that occurs twice has its later index.
 *
 * tokenizer.json spells each byte as one printable character: bytes 33 to 126, 161 to 172 and 174
 * to 255 as the code point of the same value, the other 68 in rising order as U+0100 to U+0143.
 * Loading turns that into bytes, so the alphabet exists here only.
 *
 * The trap: not every entry is what the merges make of its bytes. The released vocabulary holds 201
 * that no merge produces (" Japón" is three ids, not its own entry). The shortcut "the piece is an
 * entry, so its id is the answer" is right only for the others; loading runs the merges over every
 * entry and marks those that come back as themselves.
 *
 * Speed: most pieces are one look-up in `slots`. A slot holds the first eight bytes, so that an
 * ordinary word touches one cache line. Short pieces look for the lowest rank along an array; long
 * ones use a heap, because a megabyte of one letter would take the array quadratic time. */
#include "text/bpe.h"

#include <stdlib.h>

#include "base/utf8.h"

enum {
    ID_BITS = 20,
    LENGTH_BITS = 11,
    RANK_BITS = 24,
    NO_ID = (1 << ID_BITS) - 1,
    NO_RANK = (1 << RANK_BITS) - 1,
    SHORT_PIECE = 32, /* bytes; measured: the heap wins from about 60 on */
    N_BYTES = 256
};

/* The index of entries by their bytes: open addressing, half full at most. */
typedef struct {
    uint64_t head;            /* the first eight bytes, zeros behind */
    uint32_t n : LENGTH_BITS; /* bytes */
    uint32_t whole : 1;       /* the merges make exactly this entry of its bytes */
    uint32_t id : ID_BITS;    /* NO_ID: a free slot */
} slot;

struct bpe {
    uint32_t n_tokens, n_merges, n_unreachable;
    char *bytes;      /* of all entries, one behind the other */
    uint32_t *start;  /* [n_tokens], by id */
    uint16_t *length; /* [n_tokens], by id; 0 while loading: not yet seen */
    slot *slots;
    unsigned slot_shift; /* 64 less the bits of a slot number */
    /* Pairs, open addressing, half full at most: left id, right id, rank from the high bits down;
     * all ones: free. */
    uint64_t *pairs;
    unsigned pair_shift;
    int32_t *merged; /* [length of the merges], by rank: the id the pair becomes */
    int32_t byte_id[N_BYTES];
    /* [N_BYTES][N_BYTES] ranks of pairs of single bytes: every piece begins with these. */
    uint32_t *byte_ranks;
    size_t longest; /* entry, in bytes */
};

/* ---- entries by their bytes --------------------------------------------------------------- */

/* The high bits of the product depend on every bit of `h`; they choose the slot. */
static uint64_t mix(uint64_t h) {
    return h * 0x9E3779B97F4A7C15u;
}

static uint64_t head_of(const char *p, size_t n) {
    uint64_t head = 0;
    memcpy(&head, p, n < sizeof head ? n : sizeof head);
    return head;
}

static uint64_t hash_bytes(uint64_t head, const char *p, size_t n) {
    uint64_t h = head ^ (uint64_t)n << 56;
    for (size_t at = sizeof head; at < n; at += sizeof head) {
        h = mix(h);
        h = (h ^ h >> 32) ^ head_of(p + at, n - at);
    }
    return mix(h);
}

/* The slot of the entry with these bytes, or the free slot where it would go. */
static slot *find_slot(const bpe *b, const char *p, size_t n) {
    const uint64_t head = head_of(p, n);
    uint64_t at = hash_bytes(head, p, n) >> b->slot_shift;
    for (;; at = (at + 1) & (UINT64_MAX >> b->slot_shift)) {
        slot *s = &b->slots[at];
        if (s->id == NO_ID) return s;
        if (s->head == head && s->n == n &&
            (n <= sizeof head || memcmp(b->bytes + b->start[s->id], p, n) == 0))
            return s;
    }
}

/* ---- merge ranks -------------------------------------------------------------------------- */

static uint64_t pair_key(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << ID_BITS | (uint32_t)right;
}

static uint64_t find_pair(const bpe *b, uint64_t key) {
    uint64_t at = mix(key) >> b->pair_shift;
    while (b->pairs[at] != UINT64_MAX && b->pairs[at] >> RANK_BITS != key)
        at = (at + 1) & (UINT64_MAX >> b->pair_shift);
    return at;
}

/* The rank of a pair, or NO_RANK. */
static uint32_t rank_of(const bpe *b, int32_t left, int32_t right) {
    return (uint32_t)(b->pairs[find_pair(b, pair_key(left, right))] & NO_RANK);
}

/* The rank of the ids of two bytes. */
static uint32_t byte_rank(const bpe *b, const char *p) {
    return b->byte_ranks[(size_t)(unsigned char)p[0] * N_BYTES + (unsigned char)p[1]];
}

/* ---- the merge loop ----------------------------------------------------------------------- */

/* For pieces up to SHORT_PIECE bytes; `ids` has that room. Returns the number of ids. */
static size_t merge_short(const bpe *b, int32_t *ids, str piece) {
    uint32_t ranks[SHORT_PIECE]; /* of the pair that begins at i */
    size_t n = piece.n;
    for (size_t i = 0; i < n; i++) ids[i] = b->byte_id[(unsigned char)piece.p[i]];
    for (size_t i = 0; i + 1 < n; i++) ranks[i] = byte_rank(b, piece.p + i);
    for (;;) {
        uint32_t lowest = NO_RANK;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            if (ranks[i] < lowest) {
                lowest = ranks[i];
                at = i;
            }
        }
        if (lowest == NO_RANK) return n;
        ids[at] = b->merged[lowest];
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
        if (at + 1 < n) {
            memmove(ranks + at + 1, ranks + at + 2, (n - at - 2) * sizeof *ranks);
            ranks[at] = rank_of(b, ids[at], ids[at + 1]);
        }
        if (at > 0) ranks[at - 1] = rank_of(b, ids[at - 1], ids[at]);
    }
}

/* A long piece: a list of symbols, linked by position, and a heap of (rank, position) whose lowest
 * entry is the next merge. An entry is stale when its position's rank has changed since. */
typedef struct {
    int32_t id;
    uint32_t rank, next, previous;
} symbol;

typedef struct {
    uint64_t *p;
    size_t n;
} heap;

static void heap_sift_down(heap *h, size_t at) {
    const uint64_t item = h->p[at];
    for (size_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && h->p[child + 1] < h->p[child]) child++;
        if (h->p[child] >= item) break;
        h->p[at] = h->p[child];
    }
    h->p[at] = item;
}

static void heap_push(heap *h, uint64_t item) {
    size_t at = h->n++;
    for (; at > 0 && h->p[(at - 1) / 2] > item; at = (at - 1) / 2) h->p[at] = h->p[(at - 1) / 2];
    h->p[at] = item;
}

static void heap_pop(heap *h) {
    h->p[0] = h->p[--h->n];
    if (h->n > 0) heap_sift_down(h, 0);
}

/* Ranks the pair at `at` anew and offers it as a merge. */
static void offer(const bpe *b, symbol *symbols, heap *h, uint32_t at, uint32_t end) {
    symbol *s = &symbols[at];
    s->rank = s->next == end ? NO_RANK : rank_of(b, s->id, symbols[s->next].id);
    if (s->rank != NO_RANK) heap_push(h, (uint64_t)s->rank << 32 | at);
}

static void merge_list(const bpe *b, symbol *symbols, heap *h, str piece) {
    const uint32_t end = (uint32_t)piece.n;
    for (uint32_t i = 0; i < end; i++) {
        symbols[i] =
            (symbol){.id = b->byte_id[(unsigned char)piece.p[i]], .next = i + 1, .previous = i - 1};
    }
    for (uint32_t i = 0; i < end; i++) offer(b, symbols, h, i, end);
    while (h->n > 0) {
        const uint32_t rank = (uint32_t)(h->p[0] >> 32), at = (uint32_t)h->p[0];
        heap_pop(h);
        symbol *s = &symbols[at];
        if (s->rank != rank) continue;
        symbol *gone = &symbols[s->next];
        gone->rank = NO_RANK;
        s->id = b->merged[rank];
        s->next = gone->next;
        if (s->next != end) symbols[s->next].previous = at;
        offer(b, symbols, h, at, end);
        if (at != 0) offer(b, symbols, h, s->previous, end);
    }
}

static clef_status merge_long(const bpe *b, str piece, id_list *out, clef_error *err) {
    if (piece.n >= UINT32_MAX)
        return clef_fail(err, CLEF_ERR_LIMIT, "a word of %zu bytes, the limit is %u", piece.n,
                         UINT32_MAX - 1);
    /* A merge takes one entry off the heap and adds at most two: never more than 2 n. */
    size_t bytes;
    if (!size_mul(&bytes, piece.n, sizeof(symbol) + 2 * sizeof(uint64_t)))
        return clef_fail_memory(err);
    symbol *symbols = malloc(bytes);
    if (symbols == NULL) return clef_fail_memory(err);
    heap h = {.p = (uint64_t *)(symbols + piece.n)};
    merge_list(b, symbols, &h, piece);
    clef_status s = CLEF_OK;
    for (uint32_t at = 0; at < piece.n && s == CLEF_OK; at = symbols[at].next)
        s = id_list_add(out, &symbols[at].id, 1, err);
    free(symbols);
    return s;
}

/* The rule as it stands, without the shortcut. */
static clef_status merge(const bpe *b, str piece, id_list *out, clef_error *err) {
    if (piece.n > SHORT_PIECE) return merge_long(b, piece, out, err);
    int32_t ids[SHORT_PIECE];
    return id_list_add(out, ids, merge_short(b, ids, piece), err);
}

clef_status bpe_encode(const bpe *b, str piece, id_list *out, clef_error *err) {
    if (piece.n <= b->longest) {
        const slot *s = find_slot(b, piece.p, piece.n);
        if (s->whole) {
            const int32_t id = (int32_t)s->id;
            return id_list_add(out, &id, 1, err);
        }
    }
    return merge(b, piece, out, err);
}

/* ---- loading ------------------------------------------------------------------------------ */

enum { ALPHABET = 0x144 }; /* code points below this may spell a byte */

/* What loading needs beside the result. */
typedef struct {
    bpe *b;
    const char *label;
    int16_t byte_of[ALPHABET]; /* -1: the code point spells none */
    size_t used;               /* of b->bytes */
    uint32_t likely;           /* id that the next merge probably makes: they stand in that order */
} loader;

static void fill_alphabet(loader *l) {
    for (size_t i = 0; i < ALPHABET; i++) l->byte_of[i] = -1;
    int next = 0x100;
    for (int byte = 0; byte < N_BYTES; byte++) {
        const bool as_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
                               (byte >= 174 && byte <= 255);
        l->byte_of[as_itself ? byte : next++] = (int16_t)byte;
    }
}

/* Turns a spelling into the bytes it stands for, at most as many as it has itself. False when a
 * character is not of the alphabet. */
static bool spell(const loader *l, char *out, size_t *n, str spelling) {
    *n = 0;
    for (size_t at = 0; at < spelling.n;) {
        uint32_t point;
        const size_t width = utf8_decode(&point, spelling.p + at, spelling.n - at);
        if (width == 0 || point >= ALPHABET || l->byte_of[point] < 0) return false;
        out[(*n)++] = (char)l->byte_of[point];
        at += width;
    }
    return true;
}

/* Bits that number twice `n` slots, so that at most half of them are taken. */
static unsigned bits_for(size_t n) {
    unsigned bits = 1;
    while ((size_t)1 << bits < 2 * n) bits++;
    return bits;
}

static clef_status allocate(bpe *b, size_t n_tokens, size_t n_merges, size_t n_bytes,
                            clef_error *err) {
    const unsigned slot_bits = bits_for(n_tokens), pair_bits = bits_for(n_merges);
    const size_t n_slots = (size_t)1 << slot_bits, n_pairs = (size_t)1 << pair_bits;
    b->bytes = malloc(n_bytes + 1);
    b->start = malloc(n_tokens * sizeof *b->start);
    b->length = calloc(n_tokens, sizeof *b->length);
    b->slots = malloc(n_slots * sizeof *b->slots);
    b->pairs = malloc(n_pairs * sizeof *b->pairs);
    b->merged = malloc((n_merges + 1) * sizeof *b->merged);
    b->byte_ranks = malloc((size_t)N_BYTES * N_BYTES * sizeof *b->byte_ranks);
    if (b->byte_ranks == NULL || b->bytes == NULL || b->start == NULL || b->length == NULL ||
        b->slots == NULL || b->pairs == NULL || b->merged == NULL)
        return clef_fail_memory(err);
    for (size_t i = 0; i < n_slots; i++) b->slots[i] = (slot){.id = NO_ID};
    memset(b->pairs, 0xFF, n_pairs * sizeof *b->pairs);
    b->slot_shift = 64 - slot_bits;
    b->pair_shift = 64 - pair_bits;
    return CLEF_OK;
}

static clef_status add_entry(loader *l, const json *entry, clef_error *err) {
    bpe *b = l->b;
    uint64_t id;
    if (!json_u64(&id, entry, b->n_tokens - 1))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.vocab: the id of '%.*s' is %s, wanted 0 to %u as there are %u "
                         "entries",
                         l->label, STR_ARG(entry->name),
                         entry->kind == JSON_NUMBER ? "out of range" : json_kind_name(entry),
                         b->n_tokens - 1, b->n_tokens);
    if (b->length[id] != 0)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.vocab: id %u of '%.*s' is another entry's too", l->label,
                         (unsigned)id, STR_ARG(entry->name));
    char *const at = b->bytes + l->used;
    size_t n;
    if (!spell(l, at, &n, entry->name))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.vocab: '%.*s' is not written in the byte alphabet", l->label,
                         STR_ARG(entry->name));
    if (n == 0 || n > BPE_MAX_TOKEN_BYTES)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.vocab: the entry of id %u has %zu bytes, wanted 1 to %d",
                         l->label, (unsigned)id, n, BPE_MAX_TOKEN_BYTES);
    slot *s = find_slot(b, at, n);
    if (s->id != NO_ID)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: model.vocab: '%.*s' stands there twice",
                         l->label, STR_ARG(entry->name));
    *s = (slot){
        .head = head_of(at, n), .n = (uint32_t)n & BPE_MAX_TOKEN_BYTES, .id = (uint32_t)id & NO_ID};
    b->start[id] = (uint32_t)l->used;
    b->length[id] = (uint16_t)n;
    l->used += n;
    if (n > b->longest) b->longest = n;
    return CLEF_OK;
}

static clef_status load_vocab(loader *l, const json *vocab, clef_error *err) {
    bpe *b = l->b;
    for (const json *entry = vocab->first; entry != NULL; entry = entry->next)
        TRY(add_entry(l, entry, err));
    for (int i = 0; i < N_BYTES; i++) {
        const char byte = (char)i;
        const slot *s = find_slot(b, &byte, 1);
        if (s->id == NO_ID)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: model.vocab: no entry for the byte 0x%02x, wanted all 256",
                             l->label, (unsigned)i);
        b->byte_id[i] = (int32_t)s->id;
    }
    return CLEF_OK;
}

/* The two parts of a merge: ["left", "right"], or "left right" with exactly one space. */
static bool merge_parts(str parts[2], const json *m) {
    if (m->kind == JSON_ARRAY) {
        if (m->n != 2 || m->first->kind != JSON_STRING || m->first->next->kind != JSON_STRING)
            return false;
        parts[0] = m->first->text;
        parts[1] = m->first->next->text;
        return true;
    }
    const char *space = m->text.n == 0 ? NULL : memchr(m->text.p, ' ', m->text.n);
    if (space == NULL) return false;
    parts[0] = (str){m->text.p, (size_t)(space - m->text.p)};
    parts[1] = (str){space + 1, m->text.n - parts[0].n - 1};
    return parts[1].n == 0 || memchr(parts[1].p, ' ', parts[1].n) == NULL;
}

/* The id of the entry with these bytes, or NO_ID. */
static uint32_t find_result(loader *l, const char *p, size_t n) {
    const bpe *b = l->b;
    uint32_t id = l->likely;
    if (id >= b->n_tokens || b->length[id] != n || memcmp(b->bytes + b->start[id], p, n) != 0)
        id = find_slot(b, p, n)->id;
    l->likely = id + 1;
    return id;
}

static clef_status add_merge(loader *l, const json *m, uint32_t index, uint32_t rank,
                             clef_error *err) {
    bpe *b = l->b;
    str parts[2];
    if (!merge_parts(parts, m))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: model.merges[%u]: wanted two entries", l->label,
                         index);
    char bytes[4 * BPE_MAX_TOKEN_BYTES];
    size_t n = 0; /* so far: both parts stand one behind the other, which spells the result */
    int32_t ids[2];
    for (int i = 0; i < 2; i++) {
        size_t part_n = 0;
        const bool fits = parts[i].n <= sizeof bytes / 2; /* two at most spell a byte */
        const slot *s = fits && spell(l, bytes + n, &part_n, parts[i]) && part_n > 0
                            ? find_slot(b, bytes + n, part_n)
                            : NULL;
        if (s == NULL || s->id == NO_ID)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: model.merges[%u]: '%.*s' is not in the vocabulary", l->label,
                             index, STR_ARG(parts[i]));
        ids[i] = (int32_t)s->id;
        n += part_n;
    }
    const uint32_t whole = find_result(l, bytes, n);
    if (whole == NO_ID)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.merges[%u]: '%.*s%.*s' is not in the vocabulary", l->label,
                         index, STR_ARG(parts[0]), STR_ARG(parts[1]));
    const uint64_t key = pair_key(ids[0], ids[1]);
    const uint64_t at = find_pair(b, key);
    if (b->pairs[at] == UINT64_MAX) b->n_merges++;
    b->pairs[at] = key << RANK_BITS | rank;
    b->merged[rank] = (int32_t)whole;
    return CLEF_OK;
}

static clef_status load_merges(loader *l, const json *merges, clef_error *err) {
    uint32_t index = 0, rank = 0;
    for (const json *m = merges->first; m != NULL; m = m->next, index++) {
        if (m->kind != merges->first->kind || (m->kind != JSON_ARRAY && m->kind != JSON_STRING))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: model.merges[%u]: %s, wanted all arrays or all strings", l->label,
                             index, json_kind_name(m));
        const str version = STR("#version");
        if (m->kind == JSON_STRING && m->text.n >= version.n &&
            memcmp(m->text.p, version.p, version.n) == 0)
            continue; /* the first line of merges.txt; it takes no rank */
        TRY(add_merge(l, m, index, rank++, err));
    }
    return CLEF_OK;
}

static void fill_byte_ranks(bpe *b) {
    for (size_t i = 0; i < (size_t)N_BYTES * N_BYTES; i++)
        b->byte_ranks[i] = rank_of(b, b->byte_id[i / N_BYTES], b->byte_id[i % N_BYTES]);
}

/* Marks the entries for which the shortcut holds and counts the others. */
static clef_status mark_whole(bpe *b, clef_error *err) {
    id_list ids = {0};
    clef_status status = CLEF_OK;
    for (slot *s = b->slots; s <= b->slots + (UINT64_MAX >> b->slot_shift); s++) {
        if (s->id == NO_ID) continue;
        ids.n = 0;
        status = merge(b, (str){b->bytes + b->start[s->id], s->n}, &ids, err);
        if (status != CLEF_OK) break;
        if (ids.n == 1)
            s->whole = 1;
        else
            b->n_unreachable++;
    }
    id_list_free(&ids);
    return status;
}

static clef_status load(bpe *b, const json *vocab, const json *merges, const char *label,
                        clef_error *err) {
    loader l = {.b = b, .label = label};
    fill_alphabet(&l);
    size_t n_bytes = 0;
    for (const json *entry = vocab->first; entry != NULL; entry = entry->next)
        n_bytes += entry->name.n;
    if (vocab->n < N_BYTES || vocab->n > BPE_MAX_TOKENS || n_bytes > UINT32_MAX)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: model.vocab: %u entries of %zu bytes, wanted %d to %d entries", label,
                         vocab->n, n_bytes, N_BYTES, BPE_MAX_TOKENS);
    if (merges->n > BPE_MAX_MERGES)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: model.merges: %u merges, the limit is %d",
                         label, merges->n, BPE_MAX_MERGES);
    b->n_tokens = vocab->n;
    TRY(allocate(b, vocab->n, merges->n, n_bytes, err));
    TRY(load_vocab(&l, vocab, err));
    TRY(load_merges(&l, merges, err));
    fill_byte_ranks(b);
    return mark_whole(b, err);
}

clef_status bpe_load(bpe **out, const json *vocab, const json *merges, const char *label,
                     clef_error *err) {
    if (vocab == NULL || vocab->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: model.vocab: %s, wanted an object", label,
                         vocab == NULL ? "missing" : json_kind_name(vocab));
    if (merges == NULL || merges->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: model.merges: %s, wanted an array", label,
                         merges == NULL ? "missing" : json_kind_name(merges));
    bpe *b = calloc(1, sizeof *b);
    if (b == NULL) return clef_fail_memory(err);
    const clef_status s = load(b, vocab, merges, label, err);
    if (s != CLEF_OK) {
        bpe_free(b);
        return s;
    }
    *out = b;
    return CLEF_OK;
}

void bpe_free(bpe *b) {
    if (b == NULL) return;
    free(b->bytes);
    free(b->start);
    free(b->length);
    free(b->slots);
    free(b->pairs);
    free(b->merged);
    free(b->byte_ranks);
    free(b);
}

uint32_t bpe_n_tokens(const bpe *b) {
    return b->n_tokens;
}

uint32_t bpe_n_merges(const bpe *b) {
    return b->n_merges;
}

uint32_t bpe_n_unreachable(const bpe *b) {
    return b->n_unreachable;
}
