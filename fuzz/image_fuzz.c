/* image_fuzz.c - any bytes as a picture file of whatever format they begin like. */
#include "fuzz/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    picture_check((str){(const char *)data, n});
    return 0;
}
