/* part.c - "NAME.part" grows, "NAME.part.note" says what it is a part of.
 *
 * The note is five lines: this format's name, the wanted size, the wanted sum, the etag and the
 * origin of the bytes; the last two may be empty. It is replaced as a whole before the first byte
 * of another version is written, so that a part never stands beside the note of another. A part
 * whose note is missing, damaged or about another file is begun again: its bytes prove nothing.
 *
 * Traps:
 *   - the folder may hold links, made by whoever can write there: every step down is an openat
 *     with O_NOFOLLOW, and a link at the final name is replaced, not followed;
 *   - two runs at once would mix their bytes: the part is locked while it is open;
 *   - room is taken before the bytes come, without changing the size (which says how far a part
 *     has come), so that a full disk is known at once. */
#define _GNU_SOURCE /* fallocate: posix_fallocate would change the size */
#include "fetch/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The end of the name that a new file has until it replaces the old one: one that no branch or tag
 * can have, or writing refs/x could destroy refs/x.new. */
#define FRESH_TAIL "~"
#define NOTE_TAIL ".part.note"
static const char note_format[] = "clef-part/1";
enum { MAX_NOTE = 4096, BLOCK = 1 << 20 };

static clef_status fail_errno(const char *label, const char *what, int why, clef_error *err) {
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    return clef_fail(err, CLEF_ERR_IO, "%s: %s: %s%s", label, what, strerror(why),
                     full ? "; make room and give the same command again, it goes on from here"
                          : "");
}

/* ---- the way to a file ----------------------------------------------------------------------- */

int part_folder(const char **name, int root, const char *path, bool make) {
    int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    const char *at = path;
    for (const char *slash; folder >= 0 && (slash = strchr(at, '/')) != NULL; at = slash + 1) {
        char *one = strndup(at, (size_t)(slash - at));
        if (one == NULL) {
            close(folder);
            errno = ENOMEM;
            return -1;
        }
        if (make && mkdirat(folder, one, 0777) != 0 && errno != EEXIST) {
            const int why = errno;
            close(folder);
            free(one);
            errno = why;
            return -1;
        }
        const int next = openat(folder, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int why = errno;
        close(folder);
        free(one);
        folder = next;
        errno = why;
    }
    *name = at;
    return folder;
}

static clef_status begin_sum(digest **out, const part_wanted *wanted, clef_error *err) {
    return wanted->is_git ? digest_open_git(out, wanted->size, err) : digest_open(out, err);
}

/* Adds the first `n` bytes of the file to the sum; fewer when it is shorter. */
static clef_status sum_file(digest *sum, int fd, uint64_t n, const char *label, part_read *step,
                            void *user, clef_error *err) {
    char *block = malloc(BLOCK);
    if (block == NULL) return clef_fail_memory(err);
    clef_status s = CLEF_OK;
    for (uint64_t at = 0; s == CLEF_OK && at < n;) {
        const size_t most = n - at < BLOCK ? (size_t)(n - at) : BLOCK;
        const ssize_t got = pread(fd, block, most, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", label, strerror(errno));
        if (got <= 0) break;
        digest_add(sum, block, (size_t)got);
        at += (uint64_t)got;
        if (step != NULL) s = step(user, (size_t)got, err);
    }
    free(block);
    return s;
}

/* Removes the note of the file `name`, and what a run left that was killed while it wrote one. */
static void remove_note(int folder, const char *name) {
    static const char *const tails[] = {NOTE_TAIL, NOTE_TAIL FRESH_TAIL};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        buf note = {0};
        buf_printf(&note, "%s%s", name, tails[i]);
        if (!note.failed) unlinkat(folder, note.p, 0);
        buf_free(&note);
    }
}

clef_status part_is_there(bool *there, int root, const char *root_label, const char *path,
                          const part_wanted *wanted, part_read *step, void *user, clef_error *err) {
    *there = false;
    const char *name = NULL;
    const int folder = part_folder(&name, root, path, false);
    if (folder < 0) return CLEF_OK;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    digest *sum = NULL;
    clef_status s = CLEF_OK;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size == wanted->size) {
        char hex[DIGEST_HEX];
        buf label = {0};
        buf_printf(&label, "%s/%s", root_label, path);
        s = buf_status(&label, err);
        if (s == CLEF_OK) s = begin_sum(&sum, wanted, err);
        if (s == CLEF_OK) s = sum_file(sum, fd, wanted->size, label.p, step, user, err);
        if (s == CLEF_OK) s = digest_finish(sum, hex, err);
        if (s == CLEF_OK) *there = strcmp(hex, wanted->hex) == 0;
        digest_close(sum);
        buf_free(&label);
    }
    if (fd >= 0) close(fd);
    if (*there) remove_note(folder, name); /* a run may be killed after the rename */
    close(folder);
    return s;
}

uint64_t part_room(int root, const char *path, const part_wanted *wanted) {
    const char *name = NULL;
    const int folder = part_folder(&name, root, path, false);
    uint64_t taken = 0;
    struct stat st;
    buf temporary = {0};
    buf_printf(&temporary, "%s.part", folder < 0 ? "" : name);
    if (folder >= 0 && !temporary.failed &&
        fstatat(folder, temporary.p, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        taken = (uint64_t)st.st_blocks * 512;
    buf_free(&temporary);
    if (folder >= 0) close(folder);
    return taken < wanted->size ? wanted->size - taken : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static clef_status write_all(int fd, const void *bytes, size_t n, const char *label,
                             clef_error *err) {
    for (const char *at = bytes; n > 0;) {
        const ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(label, "cannot be written", errno, err);
        at += done;
        n -= (size_t)done;
    }
    return CLEF_OK;
}

/* Replaces the file `name` of a folder. */
static clef_status write_text(int folder, const char *name, str text, const char *label,
                              clef_error *err) {
    buf fresh = {0};
    buf_printf(&fresh, "%s" FRESH_TAIL, name);
    TRY(buf_status(&fresh, err));
    clef_status s = CLEF_OK;
    const int fd =
        openat(folder, fresh.p, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        s = fail_errno(label, "cannot be created", errno, err);
    } else {
        s = write_all(fd, text.p, text.n, label, err);
        if (s == CLEF_OK && fsync(fd) != 0) s = fail_errno(label, "cannot be written", errno, err);
        if (close(fd) != 0 && s == CLEF_OK) s = fail_errno(label, "cannot be written", errno, err);
        if (s == CLEF_OK && renameat(folder, fresh.p, folder, name) != 0)
            s = fail_errno(label, "cannot be written", errno, err);
        if (s != CLEF_OK) unlinkat(folder, fresh.p, 0);
    }
    buf_free(&fresh);
    return s;
}

clef_status part_text(int root, const char *root_label, const char *path, str text,
                      clef_error *err) {
    buf label = {0};
    buf_printf(&label, "%s/%s", root_label, path);
    TRY(buf_status(&label, err));
    const char *name = NULL;
    const int folder = part_folder(&name, root, path, true);
    clef_status s = CLEF_OK;
    if (folder < 0)
        s = fail_errno(label.p, "its folder cannot be made", errno, err);
    else
        s = write_text(folder, name, text, label.p, err);
    if (folder >= 0) close(folder);
    buf_free(&label);
    return s;
}

/* ---- the note -------------------------------------------------------------------------------- */

static void note_text(buf *out, const part *p) {
    buf_printf(out, "%s\n%llu\n%s\n", note_format, (unsigned long long)p->wanted.size,
               p->wanted.hex);
    buf_add(out, p->etag.p, p->etag.n);
    buf_add_char(out, '\n');
    buf_add(out, p->origin.p, p->origin.n);
    buf_add_char(out, '\n');
}

/* Takes etag and origin from the note when the rest of it is as this file wants it. */
static bool read_note(part *p) {
    char text[MAX_NOTE];
    const int fd = openat(p->folder, p->note.p, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n <= 0) return false;
    buf head = {0};
    note_text(&head, p); /* with an empty etag and origin: two more line ends */
    const size_t fixed = head.n > 2 ? head.n - 2 : 0;
    bool right = !head.failed && (size_t)n > fixed && memcmp(text, head.p, fixed) == 0;
    buf_free(&head);
    if (!right) return false;
    const str rest = {text + fixed, (size_t)n - fixed};
    const char *end = memchr(rest.p, '\n', rest.n);
    const size_t etag = end == NULL ? 0 : (size_t)(end - rest.p);
    /* Both go into a request: nothing but printable characters. */
    for (size_t i = 0; i < rest.n; i++)
        right = right && ((rest.p[i] > ' ' && rest.p[i] <= '~') || rest.p[i] == '\n');
    right = right && end != NULL && rest.p[rest.n - 1] == '\n' &&
            memchr(end + 1, '\n', rest.n - etag - 1) == rest.p + rest.n - 1;
    if (!right) return false;
    buf_add(&p->etag, rest.p, etag);
    buf_add(&p->origin, end + 1, rest.n - etag - 2);
    return !p->etag.failed && !p->origin.failed;
}

static clef_status write_note(part *p, clef_error *err) {
    buf text = {0};
    note_text(&text, p);
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = write_text(p->folder, p->note.p, (str){text.p, text.n}, p->label.p, err);
    buf_free(&text);
    return s;
}

/* ---- the part -------------------------------------------------------------------------------- */

static clef_status open_part(part *p, clef_error *err) {
    p->fd = openat(p->folder, p->temporary.p,
                   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (p->fd < 0) return fail_errno(p->label.p, "cannot be created", errno, err);
    struct stat st, named;
    if (fstat(p->fd, &st) != 0) return fail_errno(p->label.p, "cannot be read", errno, err);
    if (!S_ISREG(st.st_mode))
        return clef_fail(err, CLEF_ERR_IO, "%s.part: not a regular file", p->label.p);
    /* Its owner may have finished between the two calls: the name is then gone, and what is open
     * here is the complete file. */
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0 ||
        fstatat(p->folder, p->temporary.p, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        named.st_ino != st.st_ino)
        return clef_fail(err, CLEF_ERR_IO, "%s: another program is fetching it now", p->label.p);
    if (fstat(p->fd, &st) != 0) return fail_errno(p->label.p, "cannot be read", errno, err);
    p->have = (uint64_t)st.st_size;
    return CLEF_OK;
}

/* Takes the room of the whole file now. A file system that cannot is no reason to stop. */
static clef_status take_room(part *p, clef_error *err) {
    if (p->wanted.size == 0 || p->wanted.size > INT64_MAX) return CLEF_OK;
    if (fallocate(p->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)p->wanted.size) == 0) return CLEF_OK;
    const int why = errno;
    if (why != ENOSPC && why != EDQUOT && why != EFBIG) return CLEF_OK;
    /* What was taken before the room ran out is given back: others need the disk too. */
    if (ftruncate(p->fd, (off_t)p->have) != 0)
        return fail_errno(p->label.p, "no room for it, and none can be given back", errno, err);
    return fail_errno(p->label.p, "no room for it", why, err);
}

clef_status part_open(part *p, int root, const char *root_label, const char *path,
                      const part_wanted *wanted, part_read *step, void *user, clef_error *err) {
    *p = (part){.folder = -1, .fd = -1, .wanted = *wanted};
    const char *name = NULL;
    buf_printf(&p->label, "%s/%s", root_label, path);
    TRY(buf_status(&p->label, err));
    p->folder = part_folder(&name, root, path, true);
    if (p->folder < 0) return fail_errno(p->label.p, "its folder cannot be made", errno, err);
    buf_add_text(&p->name, name);
    buf_printf(&p->temporary, "%s.part", name);
    buf_printf(&p->note, "%s" NOTE_TAIL, name);
    TRY(buf_status(&p->name, err));
    TRY(buf_status(&p->temporary, err));
    TRY(buf_status(&p->note, err));
    TRY(open_part(p, err));
    if (p->have == 0 || p->have > wanted->size || !read_note(p)) {
        TRY(part_restart(p, err));
        TRY(part_from(p, (str){0}, (str){0}, err));
    } else {
        TRY(begin_sum(&p->sum, wanted, err));
        TRY(sum_file(p->sum, p->fd, p->have, p->label.p, step, user, err));
        if (lseek(p->fd, (off_t)p->have, SEEK_SET) < 0)
            return fail_errno(p->label.p, "cannot be written", errno, err);
    }
    return take_room(p, err);
}

clef_status part_restart(part *p, clef_error *err) {
    digest_close(p->sum);
    p->sum = NULL;
    p->have = 0;
    if (ftruncate(p->fd, 0) != 0 || lseek(p->fd, 0, SEEK_SET) < 0)
        return fail_errno(p->label.p, "cannot be emptied", errno, err);
    return begin_sum(&p->sum, &p->wanted, err);
}

static void set_text(buf *out, str text) {
    out->n = 0;
    buf_add_str(out, text);
    buf_add(out, "", 0); /* zero-terminated when empty too */
}

clef_status part_from(part *p, str etag, str origin, clef_error *err) {
    set_text(&p->etag, etag);
    set_text(&p->origin, origin);
    TRY(buf_status(&p->etag, err));
    TRY(buf_status(&p->origin, err));
    return write_note(p, err);
}

/* What a failure in the middle leaves on the disk does no harm: the next run reads it again. */
clef_status part_write(part *p, const void *bytes, size_t n, clef_error *err) {
    if (n > p->wanted.size - p->have)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "%s: the server sends more than the %llu bytes it has", p->label.p,
                         (unsigned long long)p->wanted.size);
    TRY(write_all(p->fd, bytes, n, p->label.p, err));
    digest_add(p->sum, bytes, n);
    p->have += n;
    return CLEF_OK;
}

clef_status part_finish(part *p, clef_error *err) {
    char hex[DIGEST_HEX];
    TRY(digest_finish(p->sum, hex, err));
    if (p->have != p->wanted.size || strcmp(hex, p->wanted.hex) != 0) {
        clef_fail(err, CLEF_ERR_FORMAT, "%s: what came has the sum %s, wanted %s", p->label.p, hex,
                  p->wanted.hex);
        TRY(part_restart(p, err));
        return CLEF_ERR_FORMAT;
    }
    if (fsync(p->fd) != 0) return fail_errno(p->label.p, "cannot be written", errno, err);
    if (renameat(p->folder, p->temporary.p, p->folder, p->name.p) != 0)
        return fail_errno(p->label.p, "cannot be given its name", errno, err);
    remove_note(p->folder, p->name.p);
    if (fsync(p->folder) != 0 && errno != EINVAL) /* a file system without this call */
        return fail_errno(p->label.p, "its folder cannot be written", errno, err);
    return CLEF_OK;
}

void part_close(part *p) {
    if (p->fd >= 0) close(p->fd);
    if (p->folder >= 0) close(p->folder);
    digest_close(p->sum);
    buf_free(&p->label);
    buf_free(&p->name);
    buf_free(&p->temporary);
    buf_free(&p->note);
    buf_free(&p->etag);
    buf_free(&p->origin);
    *p = (part){.folder = -1, .fd = -1};
}
