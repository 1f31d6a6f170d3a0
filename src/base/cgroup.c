/* cgroup.c - reads the files of control groups, version 1 or 2 or both at once.
 *
 * CGROUP_SELF has a line "number:controllers:path" for each hierarchy this process is in; version 2
 * is the line without controllers. A limit may stand in the group itself or in any group above it,
 * so all of them are read, up to the root. Two traps:
 *   - in a container the path may be the host's, whose folders are not mounted: those that do not
 *     exist set no limit, and the walk ends at the mount, which is then the container's own group;
 *   - a group's memory usage counts the page cache, mapped weights included, which the kernel drops
 *     before it refuses anything; inactive and active file pages are therefore room. */
#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kernel_number(uint64_t *out, const char *path, const char *name) {
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    char line[256];
    bool found = false;
    const size_t n = strlen(name);
    while (!found && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, n) != 0) continue;
        char *end = line + n;
        const uint64_t value = strtoull(line + n, &end, 10);
        found = end != line + n;
        if (found) *out = value;
    }
    fclose(f);
    return found;
}

enum { PATH_ROOM = 4096 + 64 }; /* the longest path that Linux opens, and a name */

/* "dir", "between", "name" in path[PATH_ROOM]; false when they do not fit. Not allocated, because
 * memory may be short when its limits are asked for, and an unread limit would count as none. */
static bool join(char *path, const char *dir, const char *between, const char *name) {
    const int n = snprintf(path, PATH_ROOM, "%s%s%s", dir, between, name);
    return n >= 0 && n < PATH_ROOM;
}

/* ---- walking ----------------------------------------------------------------------------------
 */

/* Called with the folder of a group. */
typedef void visit_group(void *context, const char *dir, bool v2);

/* Whether `name` is one of the words between commas. */
static bool lists(const char *words, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = words; p != NULL; p = strchr(p, ',')) {
        if (*p == ',') p++;
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0')) return true;
    }
    return false;
}

/* The group `path` below `mount` and those above it; `path` is cut on the way. */
static void visit_upwards(const char *mount, char *path, bool v2, visit_group *visit,
                          void *context) {
    for (size_t n = strlen(path);;) {
        while (n > 0 && path[n - 1] == '/') n--;
        path[n] = '\0';
        char dir[PATH_ROOM];
        if (join(dir, mount, "", path)) visit(context, dir, v2);
        if (n == 0) return;
        while (n > 0 && path[n - 1] != '/') n--;
    }
}

static void visit_groups(const char *controller, const char *root, const char *self,
                         visit_group *visit, void *context) {
    FILE *f = fopen(self, "re");
    if (f == NULL) return;
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL) continue;
        *path++ = '\0';
        controllers++;
        const bool v2 = *controllers == '\0';
        if (!v2 && !lists(controllers, controller)) continue;
        char mount[PATH_ROOM];
        if (join(mount, root, v2 ? "" : "/", v2 ? "" : controller))
            visit_upwards(mount, path, v2, visit, context);
    }
    free(line);
    fclose(f);
}

static bool number_in(uint64_t *out, const char *dir, const char *name, const char *line) {
    char path[PATH_ROOM];
    return join(path, dir, "/", name) && kernel_number(out, path, line);
}

/* ---- processors ------------------------------------------------------------------------------
 */

/* "quota period" in microseconds, or "max period". */
static bool read_cpu_max(double *quota, double *period, const char *dir) {
    char path[PATH_ROOM], line[128];
    if (!join(path, dir, "/", "cpu.max")) return false;
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    const bool read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    if (!read) return false;
    char *middle = line, *end = line;
    *quota = strtod(line, &middle);
    *period = strtod(middle, &end);
    return middle != line && end != middle;
}

static void look_at_cpu(void *context, const char *dir, bool v2) {
    double *least = context, quota = 0, period = 0;
    uint64_t q = 0, p = 0;
    if (v2) {
        if (!read_cpu_max(&quota, &period, dir)) return;
    } else {
        if (!number_in(&q, dir, "cpu.cfs_quota_us", "") || q > INT64_MAX) return; /* -1: none */
        if (!number_in(&p, dir, "cpu.cfs_period_us", "")) return;
        quota = (double)q;
        period = (double)p;
    }
    if (!(quota > 0 && period > 0)) return;
    if (*least == 0 || quota / period < *least) *least = quota / period;
}

double cgroup_cpus(const char *root, const char *self) {
    double least = 0;
    visit_groups("cpu", root, self, look_at_cpu, &least);
    return least;
}

/* ---- memory ----------------------------------------------------------------------------------
 */

static void look_at_memory(void *context, const char *dir, bool v2) {
    uint64_t *least = context, limit = 0, used = 0, active = 0, inactive = 0;
    if (!number_in(&limit, dir, v2 ? "memory.max" : "memory.limit_in_bytes", "")) return;
    if (!number_in(&used, dir, v2 ? "memory.current" : "memory.usage_in_bytes", "")) return;
    number_in(&active, dir, "memory.stat", v2 ? "active_file " : "total_active_file ");
    number_in(&inactive, dir, "memory.stat", v2 ? "inactive_file " : "total_inactive_file ");
    const uint64_t cache = active + inactive, taken = used > cache ? used - cache : 0;
    const uint64_t left = limit > taken ? limit - taken : 0;
    if (left < *least) *least = left;
}

uint64_t cgroup_memory(const char *root, const char *self) {
    uint64_t least = UINT64_MAX;
    visit_groups("memory", root, self, look_at_memory, &least);
    return least;
}
