/* cpu.h - what this processor can do and how much of it this process may use. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdint.h>

enum {
    CPU_AVX2_FMA = 1u << 0, /* F16C as well */
    CPU_NEON_DOT = 1u << 1,
    CPU_AVX512 = 1u << 2, /* F, BW and VL, and all of CPU_AVX2_FMA */
    CPU_AVX512_VNNI = 1u << 3
};

/* Instruction-set bits that both the processor and the operating system support. */
uint32_t cpu_features(void);

/* Processors this process may run on: its affinity mask, bounded by the quotas of its control
 * groups (v1 or v2, up to the root) rounded up; at least 1. */
unsigned cpu_count(void);

/* The same with the groups' folders and the list of them elsewhere (base/cgroup.h). */
unsigned cpu_count_at(const char *root, const char *self);

/* Seconds of a monotonic clock. */
double cpu_seconds(void);

#endif
