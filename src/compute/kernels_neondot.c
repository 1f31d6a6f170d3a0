/* kernels_neondot.c - the table for 64-bit Arm with the dot-product instructions, which sum the
 * products of integers (panel_round) four at a time; everything else is as in kernels_neon.c. Only
 * this file is compiled for them: see kernels_avx2.c. */
#include "compute/kernels.h"

#if defined(__aarch64__)

#include "compute/lanes_neon.h"

#include "compute/body_table.h"

const kernel_table kernels_neondot = {.name = "neondot", .needs = CPU_NEON_DOT, KERNEL_ENTRIES};

#endif
