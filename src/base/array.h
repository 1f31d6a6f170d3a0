/* array.h - room for a growing array. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* `items`, from malloc or NULL, with room for at least `need` items of `size` bytes; *cap, the
 * items there is room for now, at least doubles when it changes. NULL when memory is exhausted:
 * `items` then stays as it was and belongs to the caller. */
void *array_grow(void *items, size_t *cap, size_t need, size_t size);

#endif
