/* manifest_fuzz.c - any text as a list of files, in both of its forms.
 *
 * What is taken has safe paths that are one file each, sums of 64 digits, sizes within the limit,
 * and sources that end in a slash; written again as SHA256SUMS it gives the same paths and sums. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_file(const manifest_file *f) {
    const char *why = NULL;
    assert(manifest_is_path(f->path, &why));
    assert(f->path.p[f->path.n] == '\0' && strlen(f->path.p) == f->path.n);
    assert(f->path.p[0] != '/' && strstr(f->path.p, "..//") == NULL);
    assert(strcmp(f->path.p, "..") != 0 && strncmp(f->path.p, "../", 3) != 0);
    assert(strstr(f->path.p, "/../") == NULL && strchr(f->path.p, '\\') == NULL);
    assert(strspn(f->sha256, "0123456789abcdef") == DIGEST_HEX - 1);
    assert(f->size == MANIFEST_ANY_SIZE || f->size <= (uint64_t)1 << 43);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    manifest m = {0}, again = {0};
    clef_error err = {0};
    const clef_status s = manifest_parse(&m, (str){(const char *)data, n}, "list", &err);
    assert((s == CLEF_OK) == (m.n_files > 0));
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    if (s != CLEF_OK) return 0;
    buf sums = {0};
    for (size_t i = 0; i < m.n_files; i++) {
        check_file(&m.files[i]);
        buf_printf(&sums, "%s  %s\n", m.files[i].sha256, m.files[i].path.p);
    }
    for (size_t i = 0; i < m.n_sources; i++) {
        const str url = m.sources[i];
        assert(strncmp(url.p, "https://", 8) == 0 && url.p[url.n - 1] == '/');
    }
    if (sums.n <= MANIFEST_MAX_BYTES) {
        assert(manifest_parse(&again, (str){sums.p, sums.n}, "sums", NULL) == CLEF_OK);
        assert(again.n_files == m.n_files);
        for (size_t i = 0; i < m.n_files; i++) {
            assert(str_equal(again.files[i].path, m.files[i].path));
            assert(strcmp(again.files[i].sha256, m.files[i].sha256) == 0);
        }
    }
    buf_free(&sums);
    manifest_free(&again);
    manifest_free(&m);
    return 0;
}
