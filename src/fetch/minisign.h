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

#endif
