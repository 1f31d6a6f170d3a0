/* digest.c - SHA-256 and git's SHA-1 through OpenSSL's EVP interface, whose headers crypto.c alone
 * includes beside this file. */
#include "base/digest.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

struct digest {
    EVP_MD_CTX *context;
    bool failed;
};

static clef_status open_kind(digest **out, const EVP_MD *kind, clef_error *err) {
    digest *d = malloc(sizeof *d);
    if (d == NULL) return clef_fail_memory(err);
    *d = (digest){.context = EVP_MD_CTX_new()};
    if (d->context == NULL || EVP_DigestInit_ex(d->context, kind, NULL) != 1) {
        digest_close(d);
        return clef_fail_memory(err);
    }
    *out = d;
    return CLEF_OK;
}

clef_status digest_open(digest **out, clef_error *err) {
    return open_kind(out, EVP_sha256(), err);
}

clef_status digest_open_git(digest **out, uint64_t size, clef_error *err) {
    TRY(open_kind(out, EVP_sha1(), err));
    char head[32];
    const int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size);
    digest_add(*out, head, (size_t)n + 1);
    return CLEF_OK;
}

void digest_close(digest *d) {
    if (d == NULL) return;
    EVP_MD_CTX_free(d->context);
    free(d);
}

void digest_add(digest *d, const void *bytes, size_t n) {
    if (n > 0 && EVP_DigestUpdate(d->context, bytes, n) != 1) d->failed = true;
}

clef_status digest_finish(digest *d, char hex[DIGEST_HEX], clef_error *err) {
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (d->failed || EVP_DigestFinal_ex(d->context, sum, &n) != 1 || n > (DIGEST_HEX - 1) / 2)
        return clef_fail(err, CLEF_ERR_INTERNAL, "a digest failed inside OpenSSL");
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * n] = '\0';
    return CLEF_OK;
}

clef_status digest_bytes(char hex[DIGEST_HEX], const void *bytes, size_t n, clef_error *err) {
    digest *d = NULL;
    TRY(digest_open(&d, err));
    digest_add(d, bytes, n);
    const clef_status s = digest_finish(d, hex, err);
    digest_close(d);
    return s;
}

typedef struct {
    digest *d;
    uint64_t size;
    digest_step *step;
    void *user;
} reading;

static clef_status add_block(void *context, const void *bytes, size_t n, clef_error *err) {
    reading *r = context;
    digest_add(r->d, bytes, n);
    r->size += n;
    return r->step == NULL ? CLEF_OK : r->step(r->user, n, err);
}

clef_status digest_file(char hex[DIGEST_HEX], uint64_t *size, const char *path, digest_step *step,
                        void *user, clef_error *err) {
    reading r = {.step = step, .user = user};
    TRY(digest_open(&r.d, err));
    clef_status s = file_blocks(path, SIZE_MAX, add_block, &r, err);
    if (s == CLEF_OK) s = digest_finish(r.d, hex, err);
    if (s == CLEF_OK) *size = r.size;
    digest_close(r.d);
    return s;
}
