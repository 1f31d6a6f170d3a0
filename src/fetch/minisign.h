/* minisign.h - detached signatures in the formats of the program minisign: keys, checking, making.
 * minisign.c has the formats. */
#ifndef FETCH_MINISIGN_H
#define FETCH_MINISIGN_H

#include "base/buf.h"
#include "base/crypto.h"
#include "base/status.h"
#include "base/str.h"

enum { MINISIGN_NUMBER = 8, MINISIGN_ID = 17, MINISIGN_MAX_SIGNATURE = 16384 };

/* The key that signs the published manifests of Freeweights. */
#define MINISIGN_FREEWEIGHTS "RWQ7KGqyx4zCLXtUFOqvfv8L3g+8fpKJ1FsuxPyOYMF+4KufbUxKq1Oq"

typedef struct {
    unsigned char number[MINISIGN_NUMBER]; /* tells keys apart; proves nothing */
    unsigned char key[ED25519_PUBLIC];
} minisign_key;

/* Reads a public key: the short form itself (56 characters), else the path of a file in the
 * two-line form or in the short one. */
clef_status minisign_key_read(minisign_key *out, const char *text_or_path, clef_error *err);

/* How minisign shows a key number: 16 upper-case hexadecimal digits. */
void minisign_key_id(char id[MINISIGN_ID], const unsigned char number[MINISIGN_NUMBER]);

typedef enum {
    MINISIGN_HASHED_ONLY, /* what minisign has made since 0.10 */
    MINISIGN_LEGACY_TOO   /* also the whole file under Ed25519 */
} minisign_policy;

/* Checks that `signature` (the content of a .minisig file) is that of exactly the bytes `message`
 * by `key`: CLEF_ERR_FORMAT with a sentence otherwise. `label` names the signature. *comment, which
 * may be NULL, gets the trusted comment, a part of `signature`: it was signed too, and is printable
 * UTF-8 but for tabs. */
clef_status minisign_verify(const minisign_key *key, str message, str signature,
                            minisign_policy policy, const char *label, str *comment,
                            clef_error *err);

/* ---- making signatures ---- */

typedef struct {
    minisign_key public;
    unsigned char seed[ED25519_SEED];
} minisign_secret;

/* Appends the password of a secret key to `out`, which is wiped after use. */
typedef clef_status minisign_password(void *user, buf *out, clef_error *err);

/* Reads the content of a secret key file; `ask` is called when it is locked by a password. Deriving
 * the key from the password takes some seconds and, as minisign makes them, 1 GiB of memory. Wipe
 * the secret after use. */
clef_status minisign_secret_read(minisign_secret *out, str file, const char *label,
                                 minisign_password *ask, void *user, clef_error *err);

/* How costly trying a password is; minisign's own values. */
#define MINISIGN_OPS ((uint64_t)1 << 25)
#define MINISIGN_MEMORY ((uint64_t)1 << 30)

/* Makes a new key and appends the contents of its two files; `password` NULL leaves the secret key
 * unlocked. `secret` is the caller's to wipe. */
clef_status minisign_generate(buf *public, buf *secret, const str *password, uint64_t ops,
                              uint64_t memory, clef_error *err);

/* Appends the content of a signature file for the file at `path`. `comment`, the trusted comment,
 * has to be printable UTF-8 of at most 8192 bytes. */
clef_status minisign_sign_file(buf *out, const minisign_secret *secret, const char *path,
                               str comment, clef_error *err);

#endif
