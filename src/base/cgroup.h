/* cgroup.h - what the control groups of this process leave of processors and memory. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Where Linux shows the groups' folders, and which of them a process is in. */
#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_SELF "/proc/self/cgroup"

/* Processors that the quotas allow, the least of this process's group and those above it; 0: no
 * quota. `root` and `self` as above; files that are missing or say "max" set no limit. */
double cgroup_cpus(const char *root, const char *self);

/* Bytes that may still be taken, the least likewise; UINT64_MAX: no limit. */
uint64_t cgroup_memory(const char *root, const char *self);

/* The number behind `name` at the start of a line of `path`, a file of /proc or /sys; the first
 * number of the file when `name` is empty. False, with *out untouched, when there is none: a limit
 * "max" is no number. */
bool kernel_number(uint64_t *out, const char *path, const char *name);

#endif
