/* safetensors_fuzz.c - any bytes as a safetensors file.
 *
 * What passes the check opens as a file too, and covers its data exactly: as many bytes as its
 * types and shapes say, in order, none twice, all readable in the mapping. */
#include <assert.h>
#include <stdlib.h>

#include "checkpoint/safetensors.h"
#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int by_address(const void *a, const void *b) {
    const tensor *const *x = a, *const *y = b;
    const char *p = (*x)->data, *q = (*y)->data;
    if (p != q) return p < q ? -1 : 1;
    return ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

static void check_cover(const safetensors *st, const uint8_t *data, size_t n) {
    const uint32_t count = safetensors_count(st);
    const tensor **order = calloc(count + 1u, sizeof(const tensor *));
    assert(order != NULL);
    for (uint32_t i = 0; i < count; i++) {
        const safetensors_entry e = safetensors_at(st, i);
        assert(safetensors_find(st, e.name) == e.tensor);
        assert(i == 0 || str_compare(safetensors_at(st, i - 1).name, e.name) < 0);
        size_t bits = dtype_bits(e.tensor->type);
        for (uint32_t d = 0; d < e.tensor->rank; d++) bits *= e.tensor->shape[d];
        assert(bits == 8 * e.tensor->bytes);
        order[i] = e.tensor;
    }
    qsort(order, count, sizeof(const tensor *), by_address);
    size_t at = n;
    for (uint32_t i = 0; i < count; i++) at -= order[i]->bytes;
    for (uint32_t i = 0; i < count; i++) {
        assert(order[i]->bytes == 0 || memcmp(order[i]->data, data + at, order[i]->bytes) == 0);
        assert(i == 0 || (const char *)order[i]->data ==
                             (const char *)order[i - 1]->data + order[i - 1]->bytes);
        at += order[i]->bytes;
    }
    assert(at == n);
    free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    clef_error err = {0};
    const clef_status checked = safetensors_check(data, n, "fuzz", &err);
    assert(checked == CLEF_OK || checked == CLEF_ERR_FORMAT);
    assert((checked == CLEF_OK) == (err.text[0] == '\0'));

    if (checked != CLEF_OK) return 0;

    safetensors *st = NULL;
    assert(safetensors_open(&st, fuzz_write("m.safetensors", data, n), NULL) == CLEF_OK);
    assert(safetensors_bytes(st) == n);
    check_cover(st, data, n);
    safetensors_close(st);
    return 0;
}
