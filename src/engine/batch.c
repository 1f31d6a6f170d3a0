/* batch.c - records packed into chunks.
 *
 * Rows of the records are laid back to back without padding: the first record's rows, then the
 * second's, and a chunk ends wherever `chunk` rows are full. A record's state is made when its
 * first row comes up and given back after its last, so at most two records hold large state at a
 * time however long the batch is. */
#include "engine/batch.h"

#include <stdlib.h>

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
    while (room > 0 && at->item < n) {
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

static clef_status run_chunks(const batch_run *run, workspace *ws, batch_item *items, size_t n,
                              live_record *records, segment *segments, size_t *owner,
                              clef_error *err) {
    const model *m = run->m;
    size_t total = 0, done = 0;
    for (size_t i = 0; i < n; i++) total += items[i].in.n_tokens;
    cursor at = {0};
    for (;;) {
        if (run->progress != NULL && run->progress(run->user, done, total) != 0)
            return clef_fail(err, CLEF_ERR_CANCELLED, "stopped after %zu of %zu tokens", done,
                             total);
        const uint32_t n_segments = fill_chunk(run, items, n, records, &at, segments, owner);
        if (n_segments == 0) return CLEF_OK;
        backbone_chunk(m, ws, segments, n_segments, NULL, NULL);
        float *hidden = ws->y;
        for (uint32_t i = 0; i < n_segments; i++) {
            batch_item *item = &items[owner[i]];
            live_record *r = &records[owner[i]];
            head_feed(&r->head, m, ws, hidden, segments[i].n_rows);
            hidden += (size_t)segments[i].n_rows * m->cfg->hidden;
            done += segments[i].n_rows;
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
    /* A segment has at least one row, so a chunk has at most chunk of them. */
    live_record *records = calloc(n, sizeof *records);
    segment *segments = calloc(sized.chunk, sizeof *segments);
    size_t *owner = calloc(sized.chunk, sizeof *owner);
    clef_status s =
        records == NULL || segments == NULL || owner == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = run_chunks(&sized, &ws, items, n, records, segments, owner, err);
    for (size_t i = 0; records != NULL && i < n; i++) close_record(&records[i]);
    free(owner);
    free(segments);
    free(records);
    workspace_close(&ws);
    return s;
}
