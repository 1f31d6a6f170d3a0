/* minisign_fuzz.c - any text as a signature, as a public key file and as a secret key file.
 *
 * Nobody has the secret key here, so only the two signatures that were made with it are right, up
 * to the untrusted comment and the ends of the lines; everything else is refused with a sentence. A
 * secret key that opens belongs to its public key. */
#include <assert.h>
#include <string.h>

#include "fetch/minisign.h"
#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define KEY "RWTXMrWXXVzmuletLryW+qVkAbP/zNFpBMbGX37r8PA61yRmBBsENkog"
#define MESSAGE STR("hello manifest\n")

static bool contains(str text, str part) {
    for (size_t i = 0; i + part.n <= text.n; i++)
        if (memcmp(text.p + i, part.p, part.n) == 0) return true;
    return false;
}

static void as_signature(str text) {
    minisign_key key;
    clef_error err = {0};
    str comment = {0};
    assert(minisign_key_read(&key, KEY, NULL) == CLEF_OK);
    const clef_status s =
        minisign_verify(&key, MESSAGE, text, MINISIGN_LEGACY_TOO, "fuzz", &comment, &err);
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    if (s != CLEF_OK) return;
    assert(str_equal(comment, STR("timestamp:1 file:m.json hashed")) ||
           str_equal(comment, STR("timestamp:1796052675\tfile:m.json")));
    assert(contains(text, STR("7jhu8nOqsPoGK07wcSqg")) ||
           contains(text, STR("3mOiar2x7egh23TgSSOil")));
    assert(minisign_verify(&key, STR("hello manifesu\n"), text, MINISIGN_LEGACY_TOO, "fuzz", NULL,
                           NULL) != CLEF_OK);
}

static clef_status no_password(void *user, buf *out, clef_error *err) {
    (void)user;
    (void)out;
    return clef_fail(err, CLEF_ERR_INPUT, "no password"); /* scrypt would take all the time */
}

static void as_secret(str text) {
    minisign_secret secret;
    clef_error err = {0};
    const clef_status s = minisign_secret_read(&secret, text, "fuzz", no_password, NULL, &err);
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    if (s != CLEF_OK) return;
    unsigned char public[ED25519_PUBLIC];
    assert(ed25519_public(public, secret.seed, NULL) == CLEF_OK);
    assert(memcmp(public, secret.public.key, sizeof public) == 0);
}

static void as_public(const uint8_t *data, size_t n) {
    minisign_key key;
    clef_error err = {0};
    const clef_status s = minisign_key_read(&key, fuzz_write("k.pub", data, n), &err);
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    assert(s != CLEF_OK || n >= 56);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const str text = {(const char *)data, n};
    as_signature(text);
    as_secret(text);
    as_public(data, n);
    return 0;
}
