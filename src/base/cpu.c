/* cpu.c - features, usable processors, a clock. A quota shows only in the control groups' files:
 * the affinity mask of a process limited to half a machine still names all of it. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

uint32_t cpu_features(void) {
    uint32_t bits = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* Not every compiler knows "f16c" as a name. */
    unsigned a, b, c = 0, d;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    if (f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        bits |= CPU_AVX2_FMA;
    /* These names also ask XGETBV whether the system keeps the wide registers. */
    if (bits != 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        bits |= CPU_AVX512;
    if (bits & CPU_AVX512 && __builtin_cpu_supports("avx512vnni")) bits |= CPU_AVX512_VNNI;
#endif
#if defined(__aarch64__) && defined(__linux__)
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) bits |= CPU_NEON_DOT;
#endif
    return bits;
}

unsigned cpu_count_at(const char *root, const char *self) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    const double quota = cgroup_cpus(root, self);
    if (quota > 0 && quota < (double)n) n = (long)quota + (quota > (double)(long)quota);
    return n < 1 ? 1 : (unsigned)n;
}

unsigned cpu_count(void) {
    return cpu_count_at(CGROUP_ROOT, CGROUP_SELF);
}

double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
