/* output.c - "NAME.part" is written and summed, flushed to the disk, read back, renamed. */
#include "checkpoint/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

const char *output_advice(int why) {
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return "; make room and give the same command again, it goes on from here";
    if (why == EACCES || why == EPERM || why == EROFS)
        return "; choose a target that you may write to";
    return "";
}

static clef_status failed(const char *path, const char *what, int why, clef_error *err) {
    return clef_fail(err, CLEF_ERR_IO, "%s: %s%s%s", path, what, strerror(why), output_advice(why));
}

clef_status output_open(output *o, const char *dir, const char *name, clef_error *err) {
    *o = (output){.fd = -1};
    o->path = file_join(dir, name);
    buf part = {0};
    buf_printf(&part, "%s.part", o->path == NULL ? "" : o->path);
    o->part = part.failed ? NULL : buf_take(&part);
    buf_free(&part);
    clef_status s = o->path == NULL || o->part == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = digest_open(&o->sum, err);
    if (s == CLEF_OK) {
        o->fd = open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (o->fd < 0) s = failed(o->part, "cannot be created: ", errno, err);
    }
    if (s != CLEF_OK) output_abandon(o);
    return s;
}

static clef_status write_failed(const output *o, int why, clef_error *err) {
    return clef_fail(err, CLEF_ERR_IO, "%s: %s after %llu bytes%s", o->part, strerror(why),
                     (unsigned long long)o->bytes, output_advice(why));
}

clef_status output_write(output *o, const void *bytes, size_t n, clef_error *err) {
    digest_add(o->sum, bytes, n);
    for (const char *p = bytes; n > 0;) {
        const ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return write_failed(o, errno, err);
        p += done;
        n -= (size_t)done;
        o->bytes += (uint64_t)done;
    }
    return CLEF_OK;
}

clef_status output_finish(output *o, char hex[DIGEST_HEX], clef_error *err) {
    char again[DIGEST_HEX];
    uint64_t size = 0;
    clef_status s = digest_finish(o->sum, hex, err);
    if (s == CLEF_OK && fsync(o->fd) != 0) s = write_failed(o, errno, err);
    const int closed = close(o->fd);
    o->fd = -1;
    if (s == CLEF_OK && closed != 0) s = write_failed(o, errno, err);
    if (s == CLEF_OK) s = digest_file(again, &size, o->part, NULL, NULL, err);
    if (s == CLEF_OK && (size != o->bytes || memcmp(hex, again, DIGEST_HEX) != 0))
        s = clef_fail(err, CLEF_ERR_IO, "%s: what was read back is not what was written", o->part);
    if (s == CLEF_OK && rename(o->part, o->path) != 0) s = failed(o->path, "", errno, err);
    output_abandon(o);
    return s;
}

void output_abandon(output *o) {
    if (o->path == NULL && o->part == NULL) return; /* {0}, whose descriptor is no file of ours */
    if (o->fd >= 0) close(o->fd);
    digest_close(o->sum);
    free(o->path);
    free(o->part);
    *o = (output){.fd = -1};
}

clef_status output_text(const char *dir, const char *name, str text, char hex[DIGEST_HEX],
                        clef_error *err) {
    output o = {0};
    TRY(output_open(&o, dir, name, err));
    const clef_status s = output_write(&o, text.p, text.n, err);
    if (s == CLEF_OK) return output_finish(&o, hex, err);
    output_abandon(&o);
    return s;
}

clef_status output_sync_folder(const char *dir, clef_error *err) {
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(dir, "", errno, err);
    const int synced = fsync(fd), why = errno;
    close(fd);
    if (synced == 0 || why == EINVAL) return CLEF_OK; /* a file system without this call */
    return failed(dir, "", why, err);
}
