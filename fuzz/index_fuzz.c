/* index_fuzz.c - any text as the index of a folder with two good shards of two tensors each.
 *
 * The index is strict: the model opens only when it lists both tensors of each shard that it names;
 * else there is a sentence. No name of the index leads to another file than those two. */
#include <assert.h>
#include <string.h>

#include "checkpoint/safetensors.h"
#include "fuzz/fuzz_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void write_shard(const char *name, str header) {
    unsigned char file[200] = {(unsigned char)header.n}; /* the other bytes of the length are 0 */
    assert(8 + header.n + 2 <= sizeof file);
    memcpy(file + 8, header.p, header.n);
    fuzz_write(name, file, 8 + header.n + 2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    write_shard("x.safetensors",
                STR("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                    "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}"));
    write_shard("y.safetensors",
                STR("{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                    "\"d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}"));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_write("model.safetensors.index.json", data, n);
    safetensors *st = NULL;
    clef_error err = {0};
    const clef_status s = safetensors_open_model(&st, fuzz_folder(), &err);
    assert((s == CLEF_OK) == (st != NULL));
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    if (st == NULL) return 0;
    const uint32_t count = safetensors_count(st);
    assert(count == 2 || count == 4);
    for (uint32_t i = 0; i < count; i++) {
        const safetensors_entry e = safetensors_at(st, i);
        const char first = strstr(e.file, "/x.safetensors") != NULL ? 'a' : 'c';
        assert(first == 'a' || strstr(e.file, "/y.safetensors") != NULL);
        assert(e.name.n == 1 && e.name.p[0] == (char)(first + (char)(i % 2)));
    }
    safetensors_close(st);
    return 0;
}
