/* crypto.h - Ed25519 signatures (RFC 8032), the scrypt password function (RFC 7914), and random
 * bytes. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/status.h"

enum { ED25519_SEED = 32, ED25519_PUBLIC = 32, ED25519_SIGNATURE = 64 };

/* Sets *right to whether `signature` is that of the `n` bytes at `message` by the key. Fails only
 * when OpenSSL cannot do it. */
clef_status ed25519_verify(int *right, const unsigned char signature[ED25519_SIGNATURE],
                           const void *message, size_t n, const unsigned char key[ED25519_PUBLIC],
                           clef_error *err);

clef_status ed25519_sign(unsigned char signature[ED25519_SIGNATURE], const void *message, size_t n,
                         const unsigned char seed[ED25519_SEED], clef_error *err);

/* The public key that belongs to a seed. */
clef_status ed25519_public(unsigned char key[ED25519_PUBLIC],
                           const unsigned char seed[ED25519_SEED], clef_error *err);

/* Writes `n_out` bytes made of the password and the salt, with cost 2^log2_n, block size r and
 * parallelism p; takes about 128 r 2^log2_n bytes of memory, which may be refused
 * (CLEF_ERR_MEMORY). */
clef_status scrypt(unsigned char *out, size_t n_out, const void *password, size_t n_password,
                   const unsigned char *salt, size_t n_salt, unsigned log2_n, uint32_t r,
                   uint32_t p, clef_error *err);

clef_status random_bytes(void *out, size_t n, clef_error *err);

/* Overwrites secrets that will not be read again, which a compiler would leave out of a memset. */
void wipe(void *secret, size_t n);

#endif
