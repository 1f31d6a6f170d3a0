/* webp_fuzz.c - any bytes with the second mark of a WebP file, which is the one that is looked for;
 * the seeds have the first. */
#include "fuzz/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    picture_check_as(data, n, 8, STR("WEBP"));
    return 0;
}
