/* kernels_avx512.c - the table for processors with AVX-512 F, BW and VL. Only this file is
 * compiled for them: see kernels_avx2.c.
 */
#include "compute/kernels.h"

#if defined(__x86_64__)

#include "compute/lanes_avx512.h"

#include "compute/body_table.h"

const kernel_table kernels_avx512 = {.name = "avx512", .needs = CPU_AVX512, KERNEL_ENTRIES};

#endif
