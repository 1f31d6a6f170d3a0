/* prefix.h - what was computed of the beginnings of records, kept for records that begin alike. */
#ifndef ENGINE_PREFIX_H
#define ENGINE_PREFIX_H

#include "model/backbone.h"
#include "model/head.h"

typedef struct prefix_store prefix_store;
typedef struct prefix_node prefix_node;

/* Where the parts of a record end, in tokens. `state` 0: nothing of it is kept or looked for. */
typedef struct {
    uint32_t fixed, media, state;
} prefix_points;

/* The first row after `row` where a record is kept; UINT32_MAX: none. A step has to end there. */
uint32_t prefix_next_cut(const prefix_points *points, uint32_t row);

/* What a beginning is found by: equal keys, equal media, equal ids. */
typedef struct {
    str key, media; /* media: digests of the pictures that the ids only mark the places of */
    const int32_t *ids;
    prefix_points points;
} prefix_name;

/* An empty store for records of the model of `cfg`, bounded in bytes. One thread at a time. Close
 * with prefix_close, which accepts NULL, when nothing is pinned any more. */
clef_status prefix_open(prefix_store **out, const config *cfg, size_t max_bytes, clef_error *err);
void prefix_close(prefix_store *s);

/* The longest kept beginning of the record, pinned until prefix_release; it may have no rows. NULL
 * when there is no memory to note the key. */
prefix_node *prefix_find(prefix_store *s, const prefix_name *name);

/* The rows that prefix_find would find. */
uint32_t prefix_peek(const prefix_store *s, const prefix_name *name);

/* Rows that it has. */
uint32_t prefix_rows(const prefix_node *n);

/* Copies it into a record that has no row yet. */
void prefix_load(const prefix_store *s, const prefix_node *n, sequence *seq, head_run *head);

/* Keeps the rows that the record has, if there is room, and moves the record's pin there. `at` is
 * what prefix_find or prefix_keep gave; returns what to give next. */
prefix_node *prefix_keep(prefix_store *s, prefix_node *at, const prefix_name *name,
                         const sequence *seq, const head_run *head);
void prefix_release(prefix_node *n); /* accepts NULL */

/* Gives up everything that is not pinned; how many bytes that were. */
size_t prefix_drop_all(prefix_store *s);

/* Fills the members of `out` that are about the store. */
void prefix_stats(const prefix_store *s, clef_load *out);

/* What keeping one record's state of n_tokens takes, all its cuts together; SIZE_MAX when no
 * machine has that much. */
size_t prefix_bytes(const config *cfg, uint32_t n_tokens);

#endif
