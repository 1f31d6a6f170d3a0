/* array.c - growing an array by doubling. */
#include "base/array.h"

#include <stdlib.h>

#include "base/str.h"

void *array_grow(void *items, size_t *cap, size_t need, size_t size) {
    if (items != NULL && need <= *cap) return items;
    size_t room = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    if (room < need) room = need;
    if (room < 16) room = 16;
    size_t bytes;
    if (!size_mul(&bytes, room, size)) return NULL;
    void *grown = realloc(items, bytes);
    if (grown != NULL) *cap = room;
    return grown;
}
