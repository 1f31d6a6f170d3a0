/* batch.c - records packed into steps.
 *
 * Rows of a batch's records are laid back to back without padding: the first record's rows, then
 * the second's, as far as a step has room. A record's state is made when its first row comes up and
 * given back after its last, so no more than STEP_SEGMENTS records of a batch hold one at a time
 * however long it is. The delta rule's alone is 50 MiB a record at the 9B's sizes. */
#include "engine/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

/* A record between its first and its last row. */
typedef struct {
    sequence seq;
    head_run head;
    prefix_node *kept; /* what the store has of its rows; pinned */
    bool open;
} live_record;

struct batch {
    batch_item *items; /* [n] */
    live_record *records;
    size_t n;
    prefix_store *store;      /* may be NULL */
    size_t at;                /* the record whose row is placed next */
    uint32_t row;             /* of it */
    size_t first;             /* the first record that is not finished */
    size_t left, done, total; /* rows; those of a record that failed count as done */
};

clef_status batch_open(batch **out, batch_item *items, size_t n, prefix_store *store,
                       clef_error *err) {
    batch *b = calloc(1, sizeof *b);
    live_record *records = calloc(n, sizeof *records);
    if (b == NULL || records == NULL) {
        free(records);
        free(b);
        return clef_fail_memory(err);
    }
    *b = (batch){.items = items, .records = records, .n = n, .store = store};
    for (size_t i = 0; i < n; i++) {
        b->left += items[i].in.n_tokens;
        if (items[i].sight != NULL) b->total += sight_total(items[i].sight);
    }
    b->total += b->left;
    *out = b;
    return CLEF_OK;
}

size_t batch_left(const batch *b) {
    return b->left;
}

size_t batch_done(const batch *b) {
    const sight *s = b->at < b->n ? b->items[b->at].sight : NULL;
    return b->done + (s == NULL || !sight_waits(s) ? 0 : sight_done(s));
}

size_t batch_total(const batch *b) {
    return b->total;
}

static prefix_name name_of(const batch_item *item) {
    return (prefix_name){item->cache_key, item->media, item->in.ids, item->points};
}

bool batch_follows(const batch *b, const batch *ahead) {
    if (b->store == NULL || ahead->store == NULL || b->at == b->n || ahead->at == ahead->n)
        return false;
    const batch_item *x = &b->items[b->at], *y = &ahead->items[ahead->at];
    if (!str_equal(x->cache_key, y->cache_key) || !str_equal(x->media, y->media)) return false;
    const uint32_t least = x->points.state < y->points.state ? x->points.state : y->points.state;
    uint32_t shared = 0;
    while (shared < least && x->in.ids[shared] == y->in.ids[shared]) shared++;
    if (shared <= y->points.media) return false; /* what all begin with is not worth a wait */
    const prefix_name name = name_of(y);
    uint32_t row = ahead->records[ahead->at].open ? ahead->row : prefix_peek(ahead->store, &name);
    if (row < y->points.media) row = y->points.media;
    return prefix_next_cut(&y->points, row) <= shared;
}

static void release_record(live_record *r) {
    prefix_release(r->kept);
    r->kept = NULL;
}

/* Makes the record and lets it begin behind what the store has of it. */
static clef_status open_record(live_record *r, const model *m, batch_item *item,
                               prefix_store *store, clef_error *err) {
    clef_status s = sequence_open(&r->seq, m->cfg, item->in.n_tokens, err);
    if (s == CLEF_OK) s = head_open(&r->head, m, &item->in, err);
    if (s != CLEF_OK) {
        sequence_close(&r->seq);
        release_record(r);
        return s;
    }
    r->open = true;
    if (store == NULL || item->points.state == 0) return CLEF_OK;
    const prefix_name name = name_of(item);
    if (r->kept == NULL) r->kept = prefix_find(store, &name);
    if (r->kept == NULL) return CLEF_OK;
    prefix_load(store, r->kept, &r->seq, &r->head);
    item->n_cached = prefix_rows(r->kept);
    return CLEF_OK;
}

/* Hands the record's rows to the store if it stands at a cut. */
static void keep_record(live_record *r, const batch_item *item, prefix_store *store) {
    const uint32_t row = r->seq.n_done;
    if (r->kept == NULL || prefix_next_cut(&item->points, row - 1) != row) return;
    const prefix_name name = name_of(item);
    r->kept = prefix_keep(store, r->kept, &name, &r->seq, &r->head);
}

static void close_record(live_record *r) {
    if (!r->open) return;
    assert(r->kept == NULL);
    sequence_close(&r->seq);
    head_close(&r->head);
    r->open = false;
}

void batch_release(batch *b) {
    for (size_t i = b->first; i < b->n && i <= b->at; i++) release_record(&b->records[i]);
}

void batch_close(batch *b) {
    if (b == NULL) return;
    /* From the start: a record that failed is behind `first` and holds what its pictures took. */
    for (size_t i = 0; i < b->n; i++) {
        close_record(&b->records[i]);
        if (b->items[i].sight != NULL) sight_let_go(b->items[i].sight);
    }
    free(b->records);
    free(b);
}

static void next_record(batch *b) {
    b->at++;
    b->row = 0;
}

/* Leaves the next record out for the reason that stands in its item. */
static void skip_record(batch *b) {
    b->left -= b->items[b->at].in.n_tokens;
    b->done += b->items[b->at].in.n_tokens;
    next_record(b);
}

bool batch_sees(const batch *b) {
    return b->at < b->n && b->items[b->at].sight != NULL && sight_waits(b->items[b->at].sight);
}

/* Whether the store has the next record up to behind its pictures, which then need no rows. What it
 * has is pinned, to be there still when the record is opened. */
static bool find_behind_pictures(batch *b) {
    const batch_item *item = &b->items[b->at];
    live_record *r = &b->records[b->at];
    if (b->store == NULL || item->points.state == 0 || sight_works(item->sight)) return false;
    const prefix_name name = name_of(item);
    if (prefix_peek(b->store, &name) < item->points.media) return false;
    r->kept = prefix_find(b->store, &name);
    return r->kept != NULL;
}

void batch_see(batch *b, const model *m, uint32_t max_rows) {
    batch_item *item = &b->items[b->at];
    if (find_behind_pictures(b))
        sight_skip(item->sight);
    else
        item->status = sight_step(item->sight, m, max_rows, &item->err);
    if (item->status == CLEF_OK && sight_waits(item->sight)) return;
    b->done += sight_total(item->sight);
    if (item->status != CLEF_OK) skip_record(b);
}

void batch_fill(batch *b, const model *m, step *s, uint32_t rows, uint32_t segments) {
    if (segments > STEP_SEGMENTS - s->n_segments) segments = STEP_SEGMENTS - s->n_segments;
    while (rows > 0 && segments > 0 && b->at < b->n && !batch_sees(b)) {
        batch_item *item = &b->items[b->at];
        live_record *r = &b->records[b->at];
        const uint32_t n_tokens = item->in.n_tokens;
        if (!r->open) {
            item->status = open_record(r, m, item, b->store, &item->err);
            const uint32_t known = item->status == CLEF_OK ? item->n_cached : n_tokens;
            b->left -= known;
            b->done += known;
            b->row = known;
        }
        const uint32_t cut = r->kept != NULL ? prefix_next_cut(&item->points, b->row) : UINT32_MAX;
        const uint32_t end = cut < n_tokens ? cut : n_tokens;
        const uint32_t n = end - b->row < rows ? end - b->row : rows;
        if (n > 0) {
            segment *to = &s->segments[s->n_segments];
            *to = (segment){.seq = &r->seq, .ids = item->in.ids + b->row, .n_rows = n};
            if (item->sight != NULL) {
                to->positions = sight_positions(item->sight) + b->row;
                to->laid = sight_laid(item->sight) + b->row;
            }
            s->from[s->n_segments] = b;
            s->item[s->n_segments++] = b->at;
            s->n_rows += n;
            segments--;
            rows -= n;
            b->left -= n;
            b->row += n;
        }
        if (b->row < n_tokens) return;
        next_record(b);
    }
}

void step_run(const step *s, const model *m, workspace *ws) {
    assert(s->n_rows <= ws->max_rows);
    backbone_chunk(m, ws, s->segments, s->n_segments, NULL, NULL);
    float *hidden = ws->y;
    for (uint32_t i = 0; i < s->n_segments; i++) {
        const uint32_t n = s->segments[i].n_rows;
        batch *b = s->from[i];
        live_record *r = &b->records[s->item[i]];
        head_feed(&r->head, m, ws, hidden, n);
        keep_record(r, &b->items[s->item[i]], b->store);
        b->done += n;
        hidden += (size_t)n * m->cfg->hidden;
    }
}

/* The first record that is open or not yet placed. */
static size_t first_open(const batch *b) {
    size_t i = b->first;
    while (i < b->at && !b->records[i].open) i++;
    return i;
}

bool batch_has_rows_fed(const batch *b) {
    return first_open(b) < b->at;
}

void batch_finish(batch *b, const model *m, workspace *ws) {
    for (b->first = first_open(b); b->first < b->at; b->first = first_open(b)) {
        batch_item *item = &b->items[b->first];
        live_record *r = &b->records[b->first];
        assert(r->head.n_fed == item->in.n_tokens);
        release_record(r);
        if (item->sight != NULL) sight_let_go(item->sight);
        sequence_close(&r->seq); /* the largest state goes before the head's buffers come, */
        memory_give_back();      /* and what the C library kept of it would stand beside them */
        item->status = head_finish(&r->head, m, ws, item->logits, item->probabilities, &item->err);
        close_record(r);
    }
}

bool batch_complete(const batch *b) {
    return b->at == b->n && !batch_has_rows_fed(b);
}

uint32_t batch_live(uint32_t chunk, uint32_t n_tokens, size_t n) {
    /* A step that begins with a record's last row holds one more than fit into the rest. */
    size_t live = ((size_t)chunk - 1 + n_tokens - 1) / n_tokens + 1;
    if (live > STEP_SEGMENTS) live = STEP_SEGMENTS;
    return (uint32_t)(live < n ? live : n);
}

uint32_t batch_live_equal(uint32_t chunk, uint32_t n_tokens, size_t n) {
    const uint64_t total = (uint64_t)n * n_tokens;
    uint64_t live = 1;
    /* Steps begin at multiples of a chunk; after n_tokens of them they meet the records anew. */
    for (uint64_t i = 0; i < n_tokens && i * chunk < total; i++) {
        const uint64_t begin = i * chunk, end = total - begin < chunk ? total : begin + chunk;
        const uint64_t here = (end - 1) / n_tokens - begin / n_tokens + 1;
        if (here > live) live = here;
    }
    return live < STEP_SEGMENTS ? (uint32_t)live : STEP_SEGMENTS;
}
