/* kernels_avx2.c - the table for processors with AVX2 and FMA. Only this file is compiled for them,
 * so nothing here may run before kernels_choose has looked at the processor; all functions are
 * static, and the linker cannot lend one to code that runs elsewhere. */
#include "compute/kernels.h"

#if defined(__x86_64__)

#include "compute/lanes_avx2.h"

#include "compute/body_table.h"

const kernel_table kernels_avx2 = {.name = "avx2", .needs = CPU_AVX2_FMA, KERNEL_ENTRIES};

#endif
