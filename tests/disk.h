/* disk.h - the n-th change that a program makes to the disk fails or kills it, so that a test can
 * show what is left:
 *
 *     disk_stop_at(n, ENOSPC);   that change fails with this error
 *     disk_stop_at(n, 0);        the process dies before it
 *
 *     disk_free(bytes);          as many are free, says statvfs
 *
 * A change is an mkdir, an open that creates, a row of writes to one file, an fsync, a rename or an
 * unlink. The Makefile links every test that includes this file with -Wl,--wrap for them, so only
 * calls of our own objects are counted. One test program includes it once; one thread at a time may
 * change the disk. */
#ifndef TESTS_DISK_H
#define TESTS_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

static unsigned disk_left; /* changes until the one that is stopped; 0: none will be */
static int disk_error;     /* what it fails with; 0: the process dies */
static int disk_writing;   /* descriptor of the row of writes that goes on; -1: none */

static inline void disk_stop_at(unsigned n, int error) {
    disk_left = n;
    disk_error = error;
    disk_writing = -1;
}

static uint64_t disk_room = UINT64_MAX;

static inline void disk_free(uint64_t bytes) {
    disk_room = bytes;
}

/* Whether the change about to be made fails. */
static inline bool disk_now(int writing) {
    if (disk_left == 0 || (writing >= 0 && writing == disk_writing)) return false;
    disk_writing = writing;
    if (--disk_left > 0) return false;
    if (disk_error == 0) raise(SIGKILL);
    errno = disk_error;
    return true;
}

/* The linker's --wrap fixes these names.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __real_mkdir(const char *path, mode_t mode);
int __real_open(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t n);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);

int __real_statvfs(const char *path, struct statvfs *out);

int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_mkdir(const char *path, mode_t mode) {
    return disk_now(-1) ? -1 : __real_mkdir(path, mode);
}
int __wrap_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        if (disk_now(-1)) return -1;
    }
    return __real_open(path, flags, mode);
}
ssize_t __wrap_write(int fd, const void *bytes, size_t n) {
    return disk_now(fd) ? -1 : __real_write(fd, bytes, n);
}
int __wrap_fsync(int fd) { /* no test cuts the power, and flushing takes its time */
    (void)fd;
    return disk_now(-1) ? -1 : 0;
}
int __wrap_rename(const char *from, const char *to) {
    return disk_now(-1) ? -1 : __real_rename(from, to);
}
int __wrap_unlink(const char *path) {
    return disk_now(-1) ? -1 : __real_unlink(path);
}
int __wrap_statvfs(const char *path, struct statvfs *out) {
    const int result = __real_statvfs(path, out);
    if (result == 0 && disk_room != UINT64_MAX) out->f_bavail = disk_room / out->f_frsize;
    return result;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

#endif
