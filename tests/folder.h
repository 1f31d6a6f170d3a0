/* folder.h - a folder of its own for a test, filled with small files and removed afterwards. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

typedef struct {
    char path[256];
} folder;

static inline folder folder_new(void) {
    folder f = {.path = BUILD_DIR "folder.XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    return f;
}

/* "folder/name", good until the next call. */
static inline const char *folder_path(const folder *f, const char *name) {
    static char path[1024];
    assert_true(snprintf(path, sizeof path, "%s/%s", f->path, name) < (int)sizeof path);
    return path;
}

static inline void folder_write(const folder *f, const char *name, str bytes) {
    FILE *file = fopen(folder_path(f, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, file), bytes.n);
    assert_int_equal(fclose(file), 0);
}

static inline void folder_make(const folder *f, const char *name) {
    assert_int_equal(mkdir(folder_path(f, name), 0777), 0);
}

static inline void folder_link(const folder *f, const char *name, const char *target) {
    assert_int_equal(symlink(target, folder_path(f, name)), 0);
}

static inline int folder_remove_one(const char *path, const struct stat *st, int kind,
                                    struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Removes the folder with all it holds; links are removed, not followed. */
static inline void folder_remove(const char *path) {
    assert_int_equal(nftw(path, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The bytes of a safetensors file: the length of `header`, the header, `n_data` data bytes. */
static inline void folder_safetensors(buf *out, str header, size_t n_data) {
    for (int i = 0; i < 8; i++) buf_add_char(out, (char)((uint64_t)header.n >> 8 * i & 255));
    buf_add_str(out, header);
    for (size_t i = 0; i < n_data; i++) buf_add_char(out, (char)(i & 127));
    assert_false(out->failed);
}

#endif
