/* kernels_scalar.c - the table every machine can run, and the definition of what the others give.
 */
#include "compute/kernels.h"

#include "compute/lanes_scalar.h"

#include "compute/body_table.h"

const kernel_table kernels_scalar = {.name = "scalar", .needs = 0, KERNEL_ENTRIES};
