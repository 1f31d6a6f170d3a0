/* row_store.h - the tower's rows of pictures that may come again: equal pixels share one result. */
#ifndef ENGINE_ROW_STORE_H
#define ENGINE_ROW_STORE_H

#include "base/digest.h"
#include "base/status.h"

typedef struct row_store row_store;

/* Rows that several records may read at once. They are freed by who gives them back last, or later
 * when the store keeps them. */
typedef struct stored_rows stored_rows;

/* Keeps up to max_bytes of rows that nobody reads; 0: none. Any thread may call the functions
 * below. Close with row_store_close, which accepts NULL, when everything is given back. */
clef_status row_store_open(row_store **out, uint64_t max_bytes, clef_error *err);
void row_store_close(row_store *s);
uint64_t row_store_room(const row_store *s); /* max_bytes */

/* The rows of the picture with this digest, or NULL. */
stored_rows *row_store_find(row_store *s, const char hex[DIGEST_HEX]);

/* Room for `n_floats` that only the caller knows of; NULL when there is no memory. */
stored_rows *row_store_new(size_t n_floats);
float *stored_floats(stored_rows *r);

/* Lets others find rows that are complete from now on. */
void row_store_add(row_store *s, stored_rows *r, const char hex[DIGEST_HEX]);

/* Gives back what was found or made. `r` may be NULL. */
void row_store_release(row_store *s, stored_rows *r);

#endif
