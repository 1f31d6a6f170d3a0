/* memory.c - reads /proc and the control groups' files.
 *
 * Trap: a control group's usage counts the page cache, mapped weights included, which the kernel
 * drops before it refuses anything; inactive and active file pages are therefore room. */
#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>

/* The number behind `name` at the start of a line of `path`; the first number of the file when
 * `name` is empty. */
static bool read_number(uint64_t *out, const char *path, const char *name) {
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    char line[256];
    bool found = false;
    const size_t n = strlen(name);
    while (!found && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, n) != 0) continue;
        char *end = line + n;
        *out = strtoull(line + n, &end, 10);
        found = end != line + n; /* "max" is no number: no limit */
    }
    fclose(f);
    return found;
}

uint64_t memory_anonymous(void) {
    uint64_t kib = 0;
    return read_number(&kib, "/proc/self/status", "RssAnon:") ? kib * 1024 : 0;
}

void memory_give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void take_least(memory_room *room, uint64_t limit, uint64_t used, const char *name) {
    const uint64_t left = limit > used ? limit - used : 0;
    if (left < room->bytes) *room = (memory_room){left, name};
}

/* One control group's folder. */
static void look_at_group(memory_room *room, const char *dir, bool v2) {
    char path[1100];
    uint64_t limit = 0, used = 0, active = 0, inactive = 0;
    snprintf(path, sizeof path, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!read_number(&limit, path, "")) return;
    snprintf(path, sizeof path, "%s/%s", dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (!read_number(&used, path, "")) return;
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    read_number(&active, path, v2 ? "active_file " : "total_active_file ");
    read_number(&inactive, path, v2 ? "inactive_file " : "total_inactive_file ");
    const uint64_t cache = active + inactive;
    take_least(room, limit, used > cache ? used - cache : 0, "the control group's limit");
}

/* The group of this process and those above it, up to the mount. In a container the path may be
 * the host's: the mount itself is then the group. */
static void look_at_groups(memory_room *room) {
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (f == NULL) return;
    char line[512];
    while (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (group == NULL) continue;
        *group++ = '\0';
        controllers++;
        const bool v2 = *controllers == '\0';
        if (!v2 && strcmp(controllers, "memory") != 0) continue;
        const char *mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        for (;;) {
            char dir[600];
            snprintf(dir, sizeof dir, "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
            look_at_group(room, dir, v2);
            char *slash = strrchr(group, '/');
            if (slash == NULL || group[0] == '\0') break;
            *slash = '\0';
        }
    }
    fclose(f);
}

memory_room memory_available(void) {
    memory_room room = {UINT64_MAX, "no limit"};
    uint64_t available = 0, swap = 0, size = 0;
    if (read_number(&available, "/proc/meminfo", "MemAvailable:")) {
        read_number(&swap, "/proc/meminfo", "SwapFree:");
        take_least(&room, (available + swap) * 1024, 0, "free memory");
    }
    look_at_groups(&room);
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        read_number(&size, "/proc/self/status", "VmSize:"))
        take_least(&room, limit.rlim_cur, size * 1024, "the limit of address space (ulimit -v)");
    return room;
}
