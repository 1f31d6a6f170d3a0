/* shard.h - a tensor's bytes within its file, for tests that damage a checkpoint. */
#ifndef TESTS_SHARD_H
#define TESTS_SHARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "checkpoint/safetensors.h"

/* Where byte `k` of a tensor's data stands in its file. */
static inline long shard_offset(const safetensors *st, const char *name, size_t k) {
    const tensor *t = safetensors_find(st, str_of(name));
    assert_non_null(t);
    file_map map = {0};
    assert_int_equal(file_map_open(&map, safetensors_file_of(st, t), NULL), CLEF_OK);
    uint64_t header = 0;
    memcpy(&header, map.data, sizeof header);
    char wanted[200];
    snprintf(wanted, sizeof wanted, "\"%s\":", name);
    const char *entry = strstr((const char *)map.data + 8, wanted);
    assert_non_null(entry);
    const long begin = strtol(strstr(entry, "\"data_offsets\":[") + 16, NULL, 10);
    file_unmap(&map);
    return (long)(8 + header) + begin + (long)k;
}

/* Overwrites the bytes of the file at `path` from `offset` on. */
static inline void shard_put(const char *path, long offset, const void *bytes, size_t n) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

#endif
