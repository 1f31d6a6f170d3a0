/* crypto.c - through OpenSSL's EVP interface, which together with digest.c is the only file that
 * includes its headers. Ed25519 takes the whole message in one call there; streaming is not
 * supported. */
#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

/* What OpenSSL has none of is missing from its providers: a FIPS-only one, for example. */
static clef_status unavailable(const char *what, clef_error *err) {
    return clef_fail(err, CLEF_ERR_UNSUPPORTED, "%s is not to be had from this OpenSSL", what);
}

clef_status ed25519_verify(int *right, const unsigned char signature[ED25519_SIGNATURE],
                           const void *message, size_t n, const unsigned char key[ED25519_PUBLIC],
                           clef_error *err) {
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, ED25519_PUBLIC);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    clef_status s = CLEF_OK;
    if (pkey == NULL || context == NULL ||
        EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) != 1)
        s = unavailable("Ed25519", err);
    else
        *right = EVP_DigestVerify(context, signature, ED25519_SIGNATURE, message, n) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return s;
}

clef_status ed25519_sign(unsigned char signature[ED25519_SIGNATURE], const void *message, size_t n,
                         const unsigned char seed[ED25519_SEED], clef_error *err) {
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_SEED);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t written = ED25519_SIGNATURE;
    clef_status s = CLEF_OK;
    if (pkey == NULL || context == NULL ||
        EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) != 1 ||
        EVP_DigestSign(context, signature, &written, message, n) != 1)
        s = unavailable("Ed25519", err);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return s;
}

clef_status ed25519_public(unsigned char key[ED25519_PUBLIC],
                           const unsigned char seed[ED25519_SEED], clef_error *err) {
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_SEED);
    size_t written = ED25519_PUBLIC;
    clef_status s = CLEF_OK;
    if (pkey == NULL || EVP_PKEY_get_raw_public_key(pkey, key, &written) != 1)
        s = unavailable("Ed25519", err);
    EVP_PKEY_free(pkey);
    return s;
}

clef_status scrypt(unsigned char *out, size_t n_out, const void *password, size_t n_password,
                   const unsigned char *salt, size_t n_salt, unsigned log2_n, uint32_t r,
                   uint32_t p, clef_error *err) {
    /* OpenSSL refuses what takes more memory than it is told; the caller has bounded the cost. */
    if (EVP_PBE_scrypt(password, n_password, salt, n_salt, (uint64_t)1 << log2_n, r, p,
                       (uint64_t)1 << 40, out, n_out) != 1)
        return clef_fail(err, CLEF_ERR_MEMORY,
                         "scrypt with the cost 2^%u failed: it takes %llu MiB of memory", log2_n,
                         (unsigned long long)(((uint64_t)128 * r << log2_n) >> 20));
    return CLEF_OK;
}

clef_status random_bytes(void *out, size_t n, clef_error *err) {
    if (n > INT32_MAX || RAND_bytes(out, (int)n) != 1)
        return clef_fail(err, CLEF_ERR_INTERNAL, "OpenSSL has no random bytes");
    return CLEF_OK;
}

void wipe(void *secret, size_t n) {
    OPENSSL_cleanse(secret, n);
}
