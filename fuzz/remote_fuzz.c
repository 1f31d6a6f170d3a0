/* remote_fuzz.c - any text as a page of a hub's list of files.
 *
 * Whatever is taken from it has a sum of the right length in lowercase hexadecimal digits, a size
 * within the limit, and a path that ends where its zero byte is; a page that is refused has a
 * sentence. A second page appends. */
#include <assert.h>
#include <string.h>

#include "fetch/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    remote r = {0};
    clef_error err = {0};
    const str text = {(const char *)data, n};
    const clef_status s = remote_add_page(&r, text, "page", &err);
    assert(s == err.status);
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    for (size_t i = 0; i < r.n_files; i++) {
        const remote_file *f = &r.files[i];
        const size_t digits = f->wanted.is_git ? 40 : 64;
        assert(strspn(f->wanted.hex, "0123456789abcdef") == digits);
        assert(f->wanted.hex[digits] == '\0');
        assert(f->wanted.size <= REMOTE_MAX_SIZE);
        assert(strlen(f->path.p) == f->path.n);
    }
    const size_t before = r.n_files;
    if (s == CLEF_OK && remote_add_page(&r, text, "page", NULL) == CLEF_OK)
        assert(r.n_files == 2 * before);
    remote_free(&r);
    return 0;
}
