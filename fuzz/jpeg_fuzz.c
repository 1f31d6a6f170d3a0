/* jpeg_fuzz.c - any bytes behind the mark of a JPEG file. */
#include "fuzz/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    picture_check_as(data, n, 0, STR("\xff\xd8\xff"));
    return 0;
}
