/* memory.c - reads /proc and asks the control groups. */
#include "base/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>

#include "base/cgroup.h"

uint64_t memory_anonymous(void) {
    uint64_t kib = 0;
    return kernel_number(&kib, "/proc/self/status", "RssAnon:") ? kib * 1024 : 0;
}

void memory_give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void memory_share_heaps(void) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2);
#endif
}

static void take_least(memory_room *room, uint64_t limit, uint64_t used, const char *name) {
    const uint64_t left = limit > used ? limit - used : 0;
    if (left < room->bytes) *room = (memory_room){left, name};
}

memory_room memory_available(void) {
    memory_room room = {UINT64_MAX, "no limit"};
    uint64_t available = 0, swap = 0, size = 0;
    if (kernel_number(&available, "/proc/meminfo", "MemAvailable:")) {
        kernel_number(&swap, "/proc/meminfo", "SwapFree:");
        take_least(&room, (available + swap) * 1024, 0, "free memory");
    }
    const uint64_t left = cgroup_memory(CGROUP_ROOT, CGROUP_SELF);
    take_least(&room, left, 0, "the control group's limit");
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        kernel_number(&size, "/proc/self/status", "VmSize:"))
        take_least(&room, limit.rlim_cur, size * 1024, "the limit of address space (ulimit -v)");
    return room;
}
