/* batch.c - records packed into chunks.
 *
 * Rows of the records are laid back to back without padding: the first record's rows, then the
 * second's, and a chunk ends where `chunk` rows are full or MAX_SEGMENTS records have a part in it.
 * A record's state is made when its first row comes up and given back after its last, so no more
 * than MAX_SEGMENTS records hold one at a time however long the batch is. The delta rule's alone is
 * 50 MiB a record at the 9B's sizes. */
#include "engine/batch.h"

#include <stdlib.h>

/* The shortest prompts have about 100 tokens: this many fill a chunk of the default length. */
enum { MAX_SEGMENTS = 8 };

/* A record between its first and its last row. */
typedef struct {
    sequence seq;
    head_run head;
    bool open;
} live_record;

static clef_status open_record(live_record *r, const model *m, const batch_item *item,
                               clef_error *err) {
    TRY(sequence_open(&r->seq, m->cfg, item->in.n_tokens, err));
    const clef_status s = head_open(&r->head, m, &item->in, err);
    if (s != CLEF_OK) sequence_close(&r->seq);
    r->open = s == CLEF_OK;
    return s;
}

static void close_record(live_record *r) {
    if (!r->open) return;
    sequence_close(&r->seq);
    head_close(&r->head);
    r->open = false;
}

/* Where packing stands: the next row to place. */
typedef struct {
    size_t item;
    uint32_t row;
} cursor;

/* Fills one chunk from `at` on: opens records as they come up; one that cannot be opened keeps its
 * error and is skipped. Returns the number of segments; owner[i] is the item of segment i. */
static uint32_t fill_chunk(const batch_run *run, batch_item *items, size_t n, live_record *records,
                           cursor *at, segment *segments, size_t *owner) {
    uint32_t room = run->chunk, n_segments = 0;
    while (room > 0 && n_segments < MAX_SEGMENTS && at->item < n) {
        batch_item *item = &items[at->item];
        live_record *r = &records[at->item];
        if (at->row == 0) item->status = open_record(r, run->m, item, &item->err);
        if (item->status != CLEF_OK) {
            *at = (cursor){at->item + 1, 0};
            continue;
        }
        const uint32_t left = item->in.n_tokens - at->row;
        const uint32_t rows = left < room ? left : room;
        segments[n_segments] = (segment){&r->seq, item->in.ids + at->row, rows};
        owner[n_segments++] = at->item;
        room -= rows;
        at->row += rows;
        if (at->row == item->in.n_tokens) *at = (cursor){at->item + 1, 0};
    }
    return n_segments;
}

static clef_status report(const batch_run *run, size_t done, size_t total, clef_error *err) {
    if (run->progress == NULL || run->progress(run->user, done, total) == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_CANCELLED, "stopped after %zu of %zu tokens", done, total);
}

static clef_status run_chunks(const batch_run *run, workspace *ws, batch_item *items, size_t n,
                              live_record *records, clef_error *err) {
    const model *m = run->m;
    segment segments[MAX_SEGMENTS];
    size_t owner[MAX_SEGMENTS];
    size_t total = 0, done = 0;
    for (size_t i = 0; i < n; i++) total += items[i].in.n_tokens;
    cursor at = {0};
    TRY(report(run, done, total, err));
    for (;;) {
        const uint32_t n_segments = fill_chunk(run, items, n, records, &at, segments, owner);
        if (n_segments == 0) return CLEF_OK;
        backbone_chunk(m, ws, segments, n_segments, NULL, NULL);
        float *hidden = ws->y;
        for (uint32_t i = 0; i < n_segments; i++) {
            head_feed(&records[owner[i]].head, m, ws, hidden, segments[i].n_rows);
            hidden += (size_t)segments[i].n_rows * m->cfg->hidden;
            done += segments[i].n_rows;
        }
        /* While everything is still held, so that who measures memory here sees the most of it. */
        TRY(report(run, done, total, err));
        for (uint32_t i = 0; i < n_segments; i++) {
            batch_item *item = &items[owner[i]];
            live_record *r = &records[owner[i]];
            if (r->head.n_fed < item->in.n_tokens) continue;
            sequence_close(&r->seq); /* the largest state goes before the head's buffers come */
            item->status =
                head_finish(&r->head, m, ws, item->logits, item->probabilities, &item->err);
            close_record(r);
        }
    }
}

clef_status batch_items(const batch_run *run, batch_item *items, size_t n, clef_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += items[i].in.n_tokens;
    if (total == 0) return CLEF_OK;
    batch_run sized = *run;
    if (total < run->chunk) sized.chunk = (uint32_t)total;
    workspace ws = {0};
    TRY(workspace_open(&ws, run->m->cfg, sized.chunk, err));
    live_record *records = calloc(n, sizeof *records);
    clef_status s = records == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = run_chunks(&sized, &ws, items, n, records, err);
    for (size_t i = 0; records != NULL && i < n; i++) close_record(&records[i]);
    free(records);
    workspace_close(&ws);
    return s;
}

uint32_t batch_live(uint32_t chunk, uint32_t n_tokens, size_t n) {
    /* A chunk that begins with a record's last row holds one more than fit into the rest. */
    size_t live = ((size_t)chunk - 1 + n_tokens - 1) / n_tokens + 1;
    if (live > MAX_SEGMENTS) live = MAX_SEGMENTS;
    return (uint32_t)(live < n ? live : n);
}
