/* kernels_avx512vnni.c - the same with VNNI, which sums the products of integers in one step.
 * Only this file is compiled for it: see kernels_avx2.c.
 */
#include "compute/kernels.h"

#if defined(__x86_64__)

#include "compute/lanes_avx512.h"

#include "compute/body_table.h"

const kernel_table kernels_avx512vnni = {
    .name = "avx512vnni", .needs = CPU_AVX512 | CPU_AVX512_VNNI, KERNEL_ENTRIES};

#endif
