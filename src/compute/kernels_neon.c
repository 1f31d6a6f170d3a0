/* kernels_neon.c - the table for 64-bit Arm, where NEON is part of every processor. */
#include "compute/kernels.h"

#if defined(__aarch64__)

#include "compute/lanes_neon.h"

#include "compute/body_table.h"

const kernel_table kernels_neon = {.name = "neon", .needs = 0, KERNEL_ENTRIES};

#endif
