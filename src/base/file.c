/* file.c - reading and mapping. Directories, pipes and devices are refused: a size is only a size
 * for a regular file. */
#define _GNU_SOURCE /* madvise: posix_madvise does nothing with DONTNEED */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a regular file and tells its size; the caller closes *fd. */
static clef_status open_regular(int *fd, size_t *n, const char *path, clef_error *err) {
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(f, &st) != 0) {
        const int why = errno;
        close(f);
        return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(why));
    }
    if (!S_ISREG(st.st_mode)) {
        close(f);
        return clef_fail(err, CLEF_ERR_IO, "%s: %s, wanted a regular file", path,
                         S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    }
    *fd = f;
    *n = (size_t)st.st_size;
    return CLEF_OK;
}

clef_status file_blocks(const char *path, size_t max_bytes, file_visit *visit, void *context,
                        clef_error *err) {
    int fd = -1;
    size_t size = 0;
    TRY(open_regular(&fd, &size, path, err));
    clef_status s = CLEF_OK;
    if (size > max_bytes)
        s = clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu bytes, the limit is %zu", path, size,
                      max_bytes);
    size_t done = 0;
    char *block = NULL;
    const size_t block_bytes = 1 << 20;
    if (s == CLEF_OK && (block = malloc(block_bytes)) == NULL) s = clef_fail_memory(err);
    while (s == CLEF_OK) {
        const ssize_t got = read(fd, block, block_bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
        if (got <= 0) break;
        done += (size_t)got;
        if (done > max_bytes)
            s = clef_fail(err, CLEF_ERR_LIMIT,
                          "%s: grew beyond the limit of %zu bytes while it was read", path,
                          max_bytes);
        else
            s = visit(context, block, (size_t)got, err);
    }
    free(block);
    close(fd);
    if (s == CLEF_OK && done < size)
        s = clef_fail(err, CLEF_ERR_IO, "%s: shrank from %zu to %zu bytes while it was read", path,
                      size, done);
    return s;
}

static clef_status add_to_buf(void *context, const void *bytes, size_t n, clef_error *err) {
    (void)err; /* a buffer keeps its failure */
    buf_add(context, bytes, n);
    return CLEF_OK;
}

clef_status file_read(buf *out, const char *path, size_t max_bytes, clef_error *err) {
    TRY(file_blocks(path, max_bytes, add_to_buf, out, err));
    return buf_status(out, err);
}

clef_status file_map_open(file_map *out, const char *path, clef_error *err) {
    int fd = -1;
    size_t size = 0;
    TRY(open_regular(&fd, &size, path, err));
    void *data = NULL;
    if (size > 0) {
        data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) {
            const int why = errno;
            close(fd);
            return clef_fail(err, CLEF_ERR_IO, "%s: cannot be mapped: %s", path, strerror(why));
        }
    }
    /* Reading a page behind the end of a shortened file would kill the process. */
    struct stat now;
    const bool whole = fstat(fd, &now) == 0 && (size_t)now.st_size >= size;
    close(fd); /* the mapping stays */
    if (!whole) {
        if (data != NULL) munmap(data, size);
        return clef_fail(err, CLEF_ERR_IO, "%s: shrank while it was mapped", path);
    }
    *out = (file_map){data, size};
    return CLEF_OK;
}

void file_unmap(file_map *map) {
    if (map->data == NULL) return;
    /* munmap takes a pointer to what it removes; nothing is written through it. */
    union {
        const unsigned char *in;
        void *out;
    } address = {.in = map->data};
    munmap(address.out, map->n);
    *map = (file_map){0};
}

void file_forget(const void *data, size_t n) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)data + n) / page * page;
    union {
        uintptr_t number;
        void *pointer;
    } address = {.number = begin};
    if (begin < end) madvise(address.pointer, end - begin, MADV_DONTNEED);
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool file_is_named(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

char *file_join(const char *dir, const char *name) {
    buf path = {0};
    buf_add_text(&path, dir);
    if (path.n > 0 && path.p[path.n - 1] != '/') buf_add_char(&path, '/');
    buf_add_text(&path, name);
    return buf_take(&path);
}
