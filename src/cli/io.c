/* io.c - reading and writing with every failure noticed: a short write, a full disk, a closed pipe.
 *
 * The traps of --out: renaming over a device would replace the device; renaming over a link would
 * replace the link, so its target is what is replaced; mkstemp makes a private file, so the mode
 * that the file had (or that the umask gives a new one) is put back. */
#include "cli/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/stop.h"

void io_guard_standard(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        const int got = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        if (got != fd && got >= 0) close(got);
    }
}

/* Opens a file; a pipe blocks until its other end is open too, and a signal ends the wait. */
static clef_status open_file(int *fd, const char *path, int flags, clef_error *err) {
    do {
        TRY(stop_status(err));
        *fd = open(path, flags | O_CLOEXEC);
    } while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    return CLEF_OK;
}

static clef_status read_all(buf *out, int fd, const char *name, clef_error *err) {
    const size_t block_bytes = 1 << 16;
    char *block = malloc(block_bytes);
    if (block == NULL) return clef_fail_memory(err);
    clef_status s = CLEF_OK;
    while (s == CLEF_OK) {
        const ssize_t got = read(fd, block, block_bytes);
        if (got == 0) break;
        if (got > 0 && out->n + (size_t)got > REQUEST_MAX_BYTES)
            s = clef_fail(err, CLEF_ERR_LIMIT, "%s: a request has at most %d bytes", name,
                          REQUEST_MAX_BYTES);
        else if (got > 0)
            buf_add(out, block, (size_t)got);
        else if (errno == EINTR)
            s = stop_status(err);
        else
            s = clef_fail(err, CLEF_ERR_IO, "%s: %s", name, strerror(errno));
    }
    free(block);
    return s == CLEF_OK ? buf_status(out, err) : s;
}

clef_status io_read_request(buf *out, const char *path, clef_error *err) {
    if (path == NULL || strcmp(path, "-") == 0) {
        if (isatty(STDIN_FILENO))
            fputs("clef: reading the request from the terminal; Ctrl-D ends it\n", stderr);
        return read_all(out, STDIN_FILENO, "standard input", err);
    }
    int fd = -1;
    TRY(open_file(&fd, path, O_RDONLY, err));
    const clef_status s = read_all(out, fd, path, err);
    close(fd);
    return s;
}

static clef_status write_all(int fd, const char *name, str text, clef_error *err) {
    for (size_t done = 0; done < text.n;) {
        const ssize_t n = write(fd, text.p + done, text.n - done);
        if (n < 0 && errno == EINTR) {
            TRY(stop_status(err));
            continue;
        }
        if (n < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", name, strerror(errno));
        done += (size_t)n;
    }
    return CLEF_OK;
}

/* What stands at the path of --out. */
typedef struct {
    bool exists, regular;
    mode_t mode;
    char *target; /* the file that a rename has to replace; for free() */
} place;

static clef_status find_place(place *out, const char *path, clef_error *err) {
    struct stat st;
    *out = (place){0};
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return clef_fail(err, CLEF_ERR_IO, "%s: a folder, wanted a file", path);
        out->exists = true;
        out->regular = S_ISREG(st.st_mode);
        out->mode = st.st_mode & 0777;
        out->target = out->regular ? realpath(path, NULL) : strdup(path);
    } else {
        if (errno != ENOENT) return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
        if (lstat(path, &st) == 0)
            return clef_fail(err, CLEF_ERR_IO, "%s: a link to something that does not exist", path);
        const mode_t mask = umask(0);
        umask(mask);
        out->mode = 0666 & ~mask;
        out->target = strdup(path);
    }
    if (out->target == NULL) return clef_fail_memory(err);
    return CLEF_OK;
}

clef_status io_check_out(const char *path, clef_error *err) {
    if (path == NULL) return CLEF_OK;
    place at;
    TRY(find_place(&at, path, err));
    clef_status s = CLEF_OK;
    if (at.exists && access(at.target, W_OK) != 0)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    if (s == CLEF_OK && (!at.exists || at.regular)) {
        char *slash = strrchr(at.target, '/');
        if (slash != NULL) slash[slash == at.target] = '\0'; /* the root keeps its slash */
        if (access(slash == NULL ? "." : at.target, W_OK | X_OK) != 0)
            s = clef_fail(err, CLEF_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    }
    free(at.target);
    return s;
}

/* Writes and closes `fd`. The data reaches the disk before the name does. */
static clef_status fill(int fd, const char *name, str text, mode_t mode, clef_error *err) {
    clef_status s = write_all(fd, name, text, err);
    if (s == CLEF_OK && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", name, strerror(errno));
    if (close(fd) != 0 && s == CLEF_OK)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", name, strerror(errno));
    return s;
}

static clef_status replace(const place *at, const char *path, str text, clef_error *err) {
    /* Beside the target, so that a rename is enough; with a name of its own, because the target's
     * may be as long as the file system allows. */
    const char *slash = strrchr(at->target, '/');
    buf temporary = {0};
    if (slash != NULL) buf_add(&temporary, at->target, (size_t)(slash + 1 - at->target));
    buf_add_text(&temporary, ".clef.XXXXXX");
    clef_status s = buf_status(&temporary, err);
    if (s == CLEF_OK) {
        const int fd = mkstemp(temporary.p);
        if (fd < 0) {
            s = clef_fail(err, CLEF_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
        } else {
            s = fill(fd, path, text, at->mode, err);
            if (s == CLEF_OK && rename(temporary.p, at->target) != 0)
                s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
            if (s != CLEF_OK) unlink(temporary.p);
        }
    }
    buf_free(&temporary);
    return s;
}

static clef_status write_special(const char *path, str text, clef_error *err) {
    int fd = -1;
    TRY(open_file(&fd, path, O_WRONLY, err));
    clef_status s = write_all(fd, path, text, err);
    if (close(fd) != 0 && s == CLEF_OK)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    return s;
}

clef_status io_write(const char *path, str text, clef_error *err) {
    if (path == NULL) return write_all(STDOUT_FILENO, "standard output", text, err);
    place at;
    TRY(find_place(&at, path, err));
    const clef_status s =
        at.exists && !at.regular ? write_special(path, text, err) : replace(&at, path, text, err);
    free(at.target);
    return s;
}

clef_status io_write_error(str text, clef_error *err) {
    return write_all(STDERR_FILENO, "standard error", text, err);
}
