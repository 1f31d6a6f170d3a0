/* row_store.c - rows by digest, the least recently used first to go.
 *
 * Rows that somebody reads are never dropped, but their bytes count; so the store may be over its
 * bound for as long as running requests hold more than that by themselves. It holds few pictures:
 * one takes a hundred kilobytes and more, so it is searched from end to end. */
#include "engine/row_store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct stored_rows {
    struct stored_rows *older, *newer; /* among those of the store, by last use */
    size_t bytes;
    unsigned n_readers;
    bool found; /* it is in the store */
    char hex[DIGEST_HEX];
    float floats[];
};

struct row_store {
    pthread_mutex_t lock; /* guards the lists and n_readers of what is in them */
    stored_rows *oldest, *newest;
    uint64_t bytes, max_bytes;
};

clef_status row_store_open(row_store **out, uint64_t max_bytes, clef_error *err) {
    row_store *s = calloc(1, sizeof *s);
    if (s == NULL) return clef_fail_memory(err);
    s->max_bytes = max_bytes;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return CLEF_OK;
}

/* ---- the list; with the lock held ---- */

static void take_out(row_store *s, stored_rows *r) {
    if (r->older != NULL)
        r->older->newer = r->newer;
    else
        s->oldest = r->newer;
    if (r->newer != NULL)
        r->newer->older = r->older;
    else
        s->newest = r->older;
    r->older = r->newer = NULL;
    r->found = false;
    s->bytes -= r->bytes;
}

static void put_in(row_store *s, stored_rows *r) {
    r->older = s->newest;
    if (s->newest != NULL)
        s->newest->newer = r;
    else
        s->oldest = r;
    s->newest = r;
    r->found = true;
    s->bytes += r->bytes;
}

static void shrink(row_store *s) {
    for (stored_rows *r = s->oldest, *next; r != NULL && s->bytes > s->max_bytes; r = next) {
        next = r->newer;
        if (r->n_readers > 0) continue;
        take_out(s, r);
        free(r);
    }
}

static stored_rows *search(const row_store *s, const char *hex) {
    stored_rows *r = s->newest;
    while (r != NULL && strcmp(r->hex, hex) != 0) r = r->older;
    return r;
}

/* ---- what callers see ---- */

void row_store_close(row_store *s) {
    if (s == NULL) return;
    s->max_bytes = 0;
    shrink(s);
    assert(s->oldest == NULL);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint64_t row_store_room(const row_store *s) {
    return s->max_bytes;
}

stored_rows *row_store_find(row_store *s, const char hex[DIGEST_HEX]) {
    pthread_mutex_lock(&s->lock);
    stored_rows *r = search(s, hex);
    if (r != NULL) {
        take_out(s, r);
        put_in(s, r);
        r->n_readers++;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

stored_rows *row_store_new(size_t n_floats) {
    size_t bytes;
    if (!size_mul(&bytes, n_floats, sizeof(float)) || !size_add(&bytes, bytes, sizeof(stored_rows)))
        return NULL;
    stored_rows *r = malloc(bytes);
    if (r != NULL) *r = (stored_rows){.bytes = bytes, .n_readers = 1};
    return r;
}

float *stored_floats(stored_rows *r) {
    return r->floats;
}

void row_store_add(row_store *s, stored_rows *r, const char hex[DIGEST_HEX]) {
    memcpy(r->hex, hex, DIGEST_HEX);
    pthread_mutex_lock(&s->lock);
    if (search(s, hex) == NULL) put_in(s, r); /* another request may have been faster */
    shrink(s);
    pthread_mutex_unlock(&s->lock);
}

void row_store_release(row_store *s, stored_rows *r) {
    if (r == NULL) return;
    pthread_mutex_lock(&s->lock);
    r->n_readers--;
    if (!r->found && r->n_readers == 0) free(r);
    shrink(s);
    pthread_mutex_unlock(&s->lock);
}
