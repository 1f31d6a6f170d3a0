/* png_fuzz.c - any bytes behind the mark of a PNG file. */
#include "fuzz/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    picture_check_as(data, n, 0, STR("\x89PNG\r\n\x1a\n"));
    return 0;
}
