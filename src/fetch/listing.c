/* listing.c - walks a tree without recursion: folders that were found wait in the list itself.
 * Links are named and not followed, so the walk ends and stays inside. */
#include "fetch/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"

enum { MAX_ENTRIES = 1 << 20 };

typedef struct {
    listing_entry *entries;
    size_t n, cap;
    const char *dir;
    arena *mem;
} walk;

int listing_order(const void *a, const void *b) {
    return str_compare(*(const str *)a, *(const str *)b);
}

/* "folder/name", or the name alone in the top folder. */
static clef_status add(walk *w, str folder, const char *name, clef_error *err) {
    if (w->n == MAX_ENTRIES)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: more than %d files in it", w->dir, MAX_ENTRIES);
    listing_entry *entries = array_grow(w->entries, &w->cap, w->n + 1, sizeof *entries);
    if (entries == NULL) return clef_fail_memory(err);
    w->entries = entries;
    buf path = {0};
    buf_add_str(&path, folder);
    if (folder.n > 0) buf_add_char(&path, '/');
    buf_add_text(&path, name);
    clef_status s = buf_status(&path, err);
    listing_entry e = {.kind = LISTING_OTHER};
    if (s == CLEF_OK) e.path = arena_copy(w->mem, (str){path.p, path.n});
    buf_free(&path);
    TRY(s);
    char *joined = e.path.p == NULL ? NULL : file_join(w->dir, e.path.p);
    if (joined == NULL) return clef_fail_memory(err);
    struct stat st;
    if (lstat(joined, &st) != 0) {
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", joined, strerror(errno));
    } else {
        if (S_ISREG(st.st_mode)) e.kind = LISTING_FILE;
        if (S_ISDIR(st.st_mode)) e.kind = LISTING_FOLDER;
        if (S_ISLNK(st.st_mode)) e.kind = LISTING_LINK;
        w->entries[w->n++] = e;
    }
    free(joined);
    return s;
}

static clef_status read_folder(walk *w, str folder, clef_error *err) {
    char *path = file_join(w->dir, folder.n > 0 ? folder.p : "");
    if (path == NULL) return clef_fail_memory(err);
    DIR *d = opendir(path);
    clef_status s = CLEF_OK;
    if (d == NULL) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    while (s == CLEF_OK) {
        errno = 0;
        const struct dirent *e = readdir(d); /* the stream is this call's own */
        if (e == NULL && errno != 0)
            s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
        if (e == NULL) break;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            s = add(w, folder, e->d_name, err);
    }
    if (d != NULL) closedir(d);
    free(path);
    return s;
}

clef_status listing_read(listing_entry **entries, size_t *n, const char *dir, arena *mem,
                         clef_error *err) {
    walk w = {.dir = dir, .mem = mem};
    clef_status s = read_folder(&w, (str){0}, err);
    for (size_t i = 0; s == CLEF_OK && i < w.n; i++)
        if (w.entries[i].kind == LISTING_FOLDER) s = read_folder(&w, w.entries[i].path, err);
    if (s != CLEF_OK) {
        free(w.entries);
        return s;
    }
    if (w.n > 0) qsort(w.entries, w.n, sizeof *w.entries, listing_order);
    *entries = w.entries;
    *n = w.n;
    return CLEF_OK;
}
