/* prefix.c - the beginnings of records, in a tree.
 *
 * A record can go on from any row if it has the keys, values and head memory of all rows before it,
 * and the delta rule's state and convolution history exactly there. The first are per row and are
 * shared: a node holds those of its own rows only, its ancestors hold the rest. The second are
 * copied at each cut, because the rule cannot be run backwards. The arithmetic does not depend on
 * where a record is cut (compute.h), so a record that goes on from here has the bits of one that
 * did not. Spans and the last row, of which the head keeps more than its memory, lie behind every
 * cut.
 *
 *     root (key, media) -> fixed prefix -> 2,048 rows -> end of a state
 *                                                     -> end of another that goes on differently
 *
 * Cuts are made after the media (after the fixed prefix where there are none), after the state, and
 * inside long states, so that a state that grew, or changed near its end, goes on from the longest
 * run of ids that it shares with an earlier one: every 2,048 rows, and 32 rows before its end,
 * because the last tokens of a text change when something is appended. A state of less than 64
 * tokens is not kept: computing it costs less than the step that has to end behind it.
 *
 * Two records share a node only when their keys and media are equal byte for byte. Nodes are
 * dropped from the least recently used on; using one uses its ancestors, so what is dropped first
 * has no children, and what a running record stands on is pinned. */
#include "engine/prefix.h"

#include <assert.h>
#include <stdlib.h>

enum { CUT_EVERY = 2048, CUT_BEFORE_END = 32, LEAST_CUT_STATE = 512, LEAST_STATE = 64 };

struct prefix_node {
    prefix_node *parent, *first_child; /* parent: NULL for a root */
    prefix_node *next, *previous;      /* among its parent's children, or the roots */
    prefix_node *newer, *older;        /* by use */
    unsigned pins;
    uint32_t begin, end; /* its rows of the record; 0, 0 for a root */
    char *name;          /* a root's key, then its media */
    size_t key_n, media_n;
    int32_t *ids;  /* [end - begin] */
    float *memory; /* [end - begin, head width] */
    sequence seq;  /* keys and values of its rows; state and history after the last of them */
    size_t bytes;
};

struct prefix_store {
    const config *cfg;
    size_t max_bytes, bytes;
    prefix_node *roots;
    prefix_node *newest, *oldest; /* by use */
    clef_load counts;
};

/* ---- where to cut ---- */

uint32_t prefix_next_cut(const prefix_points *p, uint32_t row) {
    if (p->state == 0) return UINT32_MAX;
    if (row < p->media) return p->media;
    const uint32_t n_state = p->state - p->media;
    if (row >= p->state || n_state < LEAST_STATE) return UINT32_MAX;
    if (n_state < LEAST_CUT_STATE) return p->state;
    const uint32_t tail = p->state - CUT_BEFORE_END;
    if (row >= tail) return p->state;
    const uint32_t next = row - row % CUT_EVERY + CUT_EVERY;
    return next < tail ? next : tail;
}

/* ---- nodes ---- */

/* What a node of n rows takes. */
static size_t node_bytes(const config *cfg, uint32_t n_rows) {
    size_t rows, bytes;
    const bool fits = size_mul(&rows, n_rows, cfg->head_width * sizeof(float) + sizeof(int32_t)) &&
                      size_add(&bytes, sequence_bytes(cfg, n_rows), rows + sizeof(prefix_node));
    return fits ? bytes : SIZE_MAX;
}

size_t prefix_bytes(const config *cfg, uint32_t n_tokens) {
    const prefix_points points = {.state = n_tokens};
    size_t total = 0;
    for (uint32_t row = 0, cut; (cut = prefix_next_cut(&points, row)) != UINT32_MAX; row = cut)
        if (!size_add(&total, total, node_bytes(cfg, cut - row))) return SIZE_MAX;
    return total;
}

static void node_free(prefix_node *n) {
    sequence_close(&n->seq);
    free(n->memory);
    free(n->ids);
    free(n->name);
    free(n);
}

/* Takes the node out of the order of use, or puts it in as the newest. */
static void unlist(prefix_store *s, prefix_node *n) {
    *(n->newer != NULL ? &n->newer->older : &s->newest) = n->older;
    *(n->older != NULL ? &n->older->newer : &s->oldest) = n->newer;
}

static void list_newest(prefix_store *s, prefix_node *n) {
    n->newer = NULL;
    n->older = s->newest;
    *(s->newest != NULL ? &s->newest->newer : &s->oldest) = n;
    s->newest = n;
}

/* Marks a node as used: its ancestors are newer than it. */
static void use(prefix_store *s, prefix_node *n) {
    for (; n != NULL; n = n->parent) {
        unlist(s, n);
        list_newest(s, n);
    }
}

static prefix_node **siblings_of(prefix_store *s, const prefix_node *n) {
    return n->parent != NULL ? &n->parent->first_child : &s->roots;
}

static void add(prefix_store *s, prefix_node *n) {
    prefix_node **first = siblings_of(s, n);
    n->next = *first;
    if (*first != NULL) (*first)->previous = n;
    *first = n;
    list_newest(s, n);
    s->bytes += n->bytes;
}

static void drop(prefix_store *s, prefix_node *n) {
    assert(n->pins == 0 && n->first_child == NULL);
    *(n->previous != NULL ? &n->previous->next : siblings_of(s, n)) = n->next;
    if (n->next != NULL) n->next->previous = n->previous;
    unlist(s, n);
    s->bytes -= n->bytes;
    if (n->parent != NULL) {
        s->counts.cache_entries--;
        s->counts.cache_dropped++;
    }
    node_free(n);
}

/* Drops the least recently used node that may go; false when there is none. */
static bool drop_one(prefix_store *s) {
    for (prefix_node *n = s->oldest; n != NULL; n = n->newer) {
        /* The analyser takes what unlist took out of the list for still being in it.
         * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        if (n->pins > 0 || n->first_child != NULL) continue;
        drop(s, n);
        return true;
    }
    return false;
}

static bool make_room(prefix_store *s, size_t bytes) {
    if (bytes > s->max_bytes) return false;
    while (s->bytes > s->max_bytes - bytes)
        if (!drop_one(s)) return false;
    return true;
}

/* ---- opening and closing ---- */

clef_status prefix_open(prefix_store **out, const config *cfg, size_t max_bytes, clef_error *err) {
    prefix_store *s = calloc(1, sizeof *s);
    if (s == NULL) return clef_fail_memory(err);
    *s = (prefix_store){.cfg = cfg, .max_bytes = max_bytes};
    *out = s;
    return CLEF_OK;
}

size_t prefix_drop_all(prefix_store *s) {
    const size_t before = s->bytes;
    while (drop_one(s)) continue;
    return before - s->bytes;
}

void prefix_close(prefix_store *s) {
    if (s == NULL) return;
    prefix_drop_all(s);
    assert(s->oldest == NULL);
    free(s);
}

/* ---- finding ---- */

static bool is_root_of(const prefix_node *n, const prefix_name *name) {
    return str_equal((str){n->name, n->key_n}, name->key) &&
           str_equal((str){n->name + n->key_n, n->media_n}, name->media);
}

static prefix_node *find_root(const prefix_store *s, const prefix_name *name) {
    prefix_node *n = s->roots;
    while (n != NULL && !is_root_of(n, name)) n = n->next;
    return n;
}

/* The root of a key and media, which is not there yet. */
static prefix_node *root_new(prefix_store *s, const prefix_name *name) {
    const size_t name_n = name->key.n + name->media.n;
    if (!make_room(s, sizeof(prefix_node) + name_n)) return NULL;
    prefix_node *n = calloc(1, sizeof *n);
    char *bytes = malloc(name_n + 1);
    if (n == NULL || bytes == NULL) {
        free(bytes);
        free(n);
        return NULL;
    }
    if (name->key.n > 0) memcpy(bytes, name->key.p, name->key.n);
    if (name->media.n > 0) memcpy(bytes + name->key.n, name->media.p, name->media.n);
    n->name = bytes;
    n->key_n = name->key.n;
    n->media_n = name->media.n;
    n->bytes = sizeof *n + name_n;
    add(s, n);
    return n;
}

static bool begins_with(const int32_t *ids, const prefix_node *n) {
    return memcmp(ids + n->begin, n->ids, (n->end - n->begin) * sizeof *ids) == 0;
}

/* The node below `root` with the most rows, at most `limit`, whose ids the record has. Children may
 * be many and more than one may fit, so all are looked at, without recursion. */
static prefix_node *longest(prefix_node *root, const int32_t *ids, uint32_t limit) {
    prefix_node *best = root, *n = root->first_child;
    while (n != NULL) {
        if (n->end <= limit && begins_with(ids, n)) {
            if (n->end > best->end) best = n;
            if (n->first_child != NULL) {
                n = n->first_child;
                continue;
            }
        }
        while (n != root && n->next == NULL) n = n->parent;
        n = n == root ? NULL : n->next;
    }
    return best;
}

prefix_node *prefix_find(prefix_store *s, const prefix_name *name) {
    prefix_node *root = find_root(s, name);
    if (root == NULL) root = root_new(s, name);
    if (root == NULL) return NULL;
    prefix_node *n = longest(root, name->ids, name->points.state);
    n->pins++;
    use(s, n);
    s->counts.cache_hits += n->end > 0;
    s->counts.cache_misses += n->end == 0;
    s->counts.cached_tokens += n->end;
    return n;
}

uint32_t prefix_peek(const prefix_store *s, const prefix_name *name) {
    prefix_node *root = find_root(s, name);
    return root == NULL ? 0 : longest(root, name->ids, name->points.state)->end;
}

uint32_t prefix_rows(const prefix_node *n) {
    return n->end;
}

void prefix_load(const prefix_store *s, const prefix_node *n, sequence *seq, head_run *head) {
    if (n->end == 0) return;
    sequence_copy_state(seq, &n->seq, s->cfg);
    seq->n_done = n->end;
    head->n_fed = n->end;
    for (; n->parent != NULL; n = n->parent) {
        const size_t width = s->cfg->head_width, n_rows = n->end - n->begin;
        sequence_copy_rows(seq, n->begin, &n->seq, 0, n->end - n->begin, s->cfg);
        memcpy(head->memory + n->begin * width, n->memory, n_rows * width * sizeof(float));
    }
}

/* ---- keeping ---- */

/* The rows that follow `parent`, up to where the record stands. NULL: no memory. */
static prefix_node *node_new(const prefix_store *s, prefix_node *parent, const prefix_name *name,
                             const sequence *seq, const head_run *head) {
    const uint32_t begin = parent->end, n_rows = seq->n_done - begin;
    const size_t width = s->cfg->head_width;
    prefix_node *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    *n = (prefix_node){.parent = parent,
                       .begin = begin,
                       .end = seq->n_done,
                       .bytes = node_bytes(s->cfg, n_rows),
                       .ids = malloc(n_rows * sizeof *n->ids),
                       .memory = malloc(n_rows * width * sizeof *n->memory)};
    if (n->ids == NULL || n->memory == NULL ||
        sequence_open(&n->seq, s->cfg, n_rows, NULL) != CLEF_OK) {
        node_free(n);
        return NULL;
    }
    memcpy(n->ids, name->ids + begin, n_rows * sizeof *n->ids);
    memcpy(n->memory, head->memory + begin * width, n_rows * width * sizeof *n->memory);
    sequence_copy_rows(&n->seq, 0, seq, begin, n_rows, s->cfg);
    sequence_copy_state(&n->seq, seq, s->cfg);
    return n;
}

prefix_node *prefix_keep(prefix_store *s, prefix_node *at, const prefix_name *name,
                         const sequence *seq, const head_run *head) {
    prefix_node *root = at;
    while (root->parent != NULL) root = root->parent;
    /* Another record may have come this way meanwhile. */
    prefix_node *n = longest(root, name->ids, seq->n_done);
    n->pins++;
    if (n->end < seq->n_done && make_room(s, node_bytes(s->cfg, seq->n_done - n->end))) {
        prefix_node *fresh = node_new(s, n, name, seq, head);
        if (fresh != NULL) {
            add(s, fresh);
            s->counts.cache_entries++;
            s->counts.cache_stored++;
            n->pins--;
            n = fresh;
            n->pins++;
        }
    }
    prefix_release(at);
    use(s, n);
    return n;
}

void prefix_release(prefix_node *n) {
    if (n == NULL) return;
    assert(n->pins > 0);
    n->pins--;
}

void prefix_stats(const prefix_store *s, clef_load *out) {
    out->cache_bytes = s->bytes;
    out->cache_max_bytes = s->max_bytes;
    out->cache_entries = s->counts.cache_entries;
    out->cache_hits = s->counts.cache_hits;
    out->cache_misses = s->counts.cache_misses;
    out->cached_tokens = s->counts.cached_tokens;
    out->cache_stored = s->counts.cache_stored;
    out->cache_dropped = s->counts.cache_dropped;
}
