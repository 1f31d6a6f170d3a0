/* minisign.c - what minisign 0.11 reads and writes, checked against that program in both
 * directions.
 *
 * A public key is 42 bytes in base64: "Ed", the key number (8), the Ed25519 key (32). The file has
 * a line "untrusted comment: ..." before it. The number is shown as a little-endian integer.
 *
 * A signature file has four lines:
 *     untrusted comment: ...          anyone may change it: never shown
 *     base64 of 74 bytes              algorithm (2), key number (8), signature (64)
 *     trusted comment: ...            signed by the last line
 *     base64 of 64 bytes              Ed25519 of signature (64) and the text after "comment: "
 * Algorithm "ED" signs the 64-byte BLAKE2b hash of the file as an ordinary message (not the
 * Ed25519ph of RFC 8032); the older "Ed" signs the file itself.
 *
 * A secret key is 158 bytes in base64, after a line "untrusted comment: ...": "Ed"; "Sc", or two
 * zero bytes when no password locks it; "B2"; salt (32), operations (8) and memory (8) of scrypt,
 * little-endian; then 104 bytes, which the output of scrypt is xored into: key number (8), seed
 * (32), public key (32), the 32-byte BLAKE2b hash of "Ed", number, seed and public key. That hash
 * is zero in keys without a password, and not needed to know a wrong one: the seed and the public
 * key belong together. */
#include "fetch/minisign.h"

#include "base/base64.h"
#include "base/blake2b.h"
#include "base/file.h"
#include "base/utf8.h"

#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "

enum {
    MAX_UNTRUSTED = 1024,
    MAX_TRUSTED = 8192,
    MAX_KEY_FILE = 4096,
    KEY_BYTES = 2 + MINISIGN_NUMBER + ED25519_PUBLIC,
    KEY_TEXT = 56,
    SIGNED_BYTES = 2 + MINISIGN_NUMBER + ED25519_SIGNATURE,
    SALT_BYTES = 32,
    CHECK_BYTES = 32,
    SALT_AT = 6,
    OPS_AT = SALT_AT + SALT_BYTES,
    MEMORY_AT = OPS_AT + 8,
    LOCKED_AT = MEMORY_AT + 8,
    SEED_AT = MINISIGN_NUMBER, /* inside what is locked */
    PUBLIC_AT = SEED_AT + ED25519_SEED,
    CHECK_AT = PUBLIC_AT + ED25519_PUBLIC,
    LOCKED_BYTES = CHECK_AT + CHECK_BYTES,
    SECRET_BYTES = LOCKED_AT + LOCKED_BYTES
};

/* Names of algorithms: the key's and the legacy signature's, the hashed signature's, and how a
 * secret key is locked and checked. */
static const unsigned char legacy_name[2] = {'E', 'd'}, hashed_name[2] = {'E', 'D'};
static const unsigned char scrypt_name[2] = {'S', 'c'}, check_name[2] = {'B', '2'};

/* Takes the first line off `text`, without its LF or CR LF; false when there is no whole line. */
static bool take_line(str *line, str *text) {
    const char *end = text->n == 0 ? NULL : memchr(text->p, '\n', text->n);
    if (end == NULL) return false;
    *line = (str){text->p, (size_t)(end - text->p)};
    *text = (str){end + 1, text->n - line->n - 1};
    if (line->n > 0 && line->p[line->n - 1] == '\r') line->n--;
    return true;
}

/* Takes `prefix` off the line; false when it begins otherwise. */
static bool take_prefix(str *line, str prefix) {
    if (line->n < prefix.n || memcmp(line->p, prefix.p, prefix.n) != 0) return false;
    *line = (str){line->p + prefix.n, line->n - prefix.n};
    return true;
}

/* Decodes exactly `n` bytes. */
static clef_status decode(unsigned char *out, size_t n, str text, const char *label,
                          const char *what, clef_error *err) {
    buf bytes = {0};
    const bool right = base64_decode(&bytes, text) && bytes.n == n;
    clef_status s = buf_status(&bytes, err);
    if (s == CLEF_OK && !right)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: the %s is not %zu bytes in base64", label, what,
                      n);
    if (s == CLEF_OK) memcpy(out, bytes.p, n);
    buf_free(&bytes);
    return s;
}

/* ---- public keys ---- */

static clef_status read_key(minisign_key *out, str text, const char *label, clef_error *err) {
    unsigned char bytes[KEY_BYTES];
    TRY(decode(bytes, sizeof bytes, text, label, "public key", err));
    if (memcmp(bytes, legacy_name, 2) != 0)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a key of another kind, wanted Ed25519", label);
    memcpy(out->number, bytes + 2, sizeof out->number);
    memcpy(out->key, bytes + 2 + MINISIGN_NUMBER, sizeof out->key);
    return CLEF_OK;
}

/* The key's line of a file, which may lack the comment and its own end. */
static clef_status read_key_file(minisign_key *out, const char *path, clef_error *err) {
    buf file = {0};
    clef_status s = file_read(&file, path, MAX_KEY_FILE, err);
    if (s == CLEF_OK) {
        str text = {file.p, file.n}, line = {0};
        if (!take_line(&line, &text)) line = text, text.n = 0;
        if (take_prefix(&line, STR(UNTRUSTED)) && !take_line(&line, &text)) line = text, text.n = 0;
        if (text.n > 0)
            s = clef_fail(err, CLEF_ERR_FORMAT, "%s: something follows the public key", path);
        else
            s = read_key(out, line, path, err);
    }
    buf_free(&file);
    return s;
}

clef_status minisign_key_read(minisign_key *out, const char *text_or_path, clef_error *err) {
    const str text = str_of(text_or_path);
    if (text.n == KEY_TEXT && !file_exists(text_or_path))
        return read_key(out, text, text_or_path, err);
    return read_key_file(out, text_or_path, err);
}

void minisign_key_id(char id[MINISIGN_ID], const unsigned char number[MINISIGN_NUMBER]) {
    static const char digits[] = "0123456789ABCDEF";
    for (int i = 0; i < MINISIGN_NUMBER; i++) {
        id[2 * i] = digits[number[MINISIGN_NUMBER - 1 - i] >> 4];
        id[2 * i + 1] = digits[number[MINISIGN_NUMBER - 1 - i] & 15];
    }
    id[MINISIGN_ID - 1] = '\0';
}

/* ---- checking ---- */

typedef struct {
    unsigned char head[SIGNED_BYTES]; /* algorithm, key number, signature */
    unsigned char global[ED25519_SIGNATURE];
    str comment;
} parts;

static clef_status bad_line(const char *label, const char *which, const char *what,
                            clef_error *err) {
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: no signature of minisign: the %s line %s", label,
                     which, what);
}

/* Printable, so that it can be shown: no control byte but the tab, nothing that hides. */
static bool is_printable(str text) {
    for (size_t at = 0; at < text.n;) {
        uint32_t point = 0;
        const size_t n = utf8_decode(&point, text.p + at, text.n - at);
        if (n == 0 || (point != '\t' && utf8_is_unsafe(point))) return false;
        at += n;
    }
    return true;
}

static clef_status read_parts(parts *out, str text, const char *label, clef_error *err) {
    str line = {0};
    if (text.n > MINISIGN_MAX_SIGNATURE)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu bytes, the limit of a signature is %d",
                         label, text.n, MINISIGN_MAX_SIGNATURE);
    if (!take_line(&line, &text) || !take_prefix(&line, STR(UNTRUSTED)))
        return bad_line(label, "first", "does not begin with 'untrusted comment: '", err);
    if (line.n > MAX_UNTRUSTED) return bad_line(label, "first", "is longer than allowed", err);
    if (!take_line(&line, &text)) return bad_line(label, "second", "is missing", err);
    TRY(decode(out->head, sizeof out->head, line, label, "signature", err));
    if (!take_line(&line, &text) || !take_prefix(&line, STR(TRUSTED)))
        return bad_line(label, "third", "does not begin with 'trusted comment: '", err);
    if (line.n > MAX_TRUSTED) return bad_line(label, "third", "is longer than allowed", err);
    if (!is_printable(line)) return bad_line(label, "third", "is not printable UTF-8", err);
    out->comment = line;
    if (!take_line(&line, &text)) return bad_line(label, "fourth", "is missing", err);
    TRY(decode(out->global, sizeof out->global, line, label, "global signature", err));
    if (text.n > 0) return bad_line(label, "fourth", "is not the last", err);
    return CLEF_OK;
}

static bool is_hashed(const parts *p) {
    return memcmp(p->head, hashed_name, 2) == 0;
}

static clef_status check_algorithm(const parts *p, minisign_policy policy, const char *label,
                                   clef_error *err) {
    if (is_hashed(p)) return CLEF_OK;
    if (memcmp(p->head, legacy_name, 2) != 0)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: made by an algorithm that is not minisign's",
                         label);
    if (policy == MINISIGN_LEGACY_TOO) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT,
                     "%s: a legacy signature (without prehashing), wanted one of minisign 0.10 or "
                     "later; clef verify --legacy takes it",
                     label);
}

static void hash(unsigned char sum[BLAKE2B_MAX], str message) {
    blake2b b;
    blake2b_begin(&b, BLAKE2B_MAX);
    blake2b_add(&b, message.p, message.n);
    blake2b_finish(&b, sum);
}

/* What the global signature signs. */
static clef_status global_message(buf *out, const unsigned char *signature, str comment,
                                  clef_error *err) {
    buf_add(out, signature, ED25519_SIGNATURE);
    buf_add_str(out, comment);
    return buf_status(out, err);
}

clef_status minisign_verify(const minisign_key *key, str message, str signature,
                            minisign_policy policy, const char *label, str *comment,
                            clef_error *err) {
    parts p = {0};
    TRY(read_parts(&p, signature, label, err));
    TRY(check_algorithm(&p, policy, label, err));
    if (memcmp(p.head + 2, key->number, MINISIGN_NUMBER) != 0) {
        char made[MINISIGN_ID], wanted[MINISIGN_ID];
        minisign_key_id(made, p.head + 2);
        minisign_key_id(wanted, key->number);
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: made with key %s, wanted key %s", label, made,
                         wanted);
    }
    unsigned char sum[BLAKE2B_MAX];
    if (is_hashed(&p)) {
        hash(sum, message);
        message = (str){(const char *)sum, sizeof sum};
    }
    const unsigned char *bytes = p.head + 2 + MINISIGN_NUMBER;
    int right = 0;
    TRY(ed25519_verify(&right, bytes, message.p, message.n, key->key, err));
    if (!right)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: the signature is not that of these bytes by this key", label);
    buf global = {0};
    clef_status s = global_message(&global, bytes, p.comment, err);
    if (s == CLEF_OK) s = ed25519_verify(&right, p.global, global.p, global.n, key->key, err);
    buf_free(&global);
    if (s == CLEF_OK && !right)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: the trusted comment was changed", label);
    if (s == CLEF_OK && comment != NULL) *comment = p.comment;
    return s;
}

/* ---- secret keys ---- */

static uint64_t get_u64(const unsigned char *p) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | p[i];
    return value;
}

static void put_u64(unsigned char *p, uint64_t value) {
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)(value >> 8 * i);
}

/* The cost and the parallelism that the scrypt program of Tarsnap, libsodium and so minisign derive
 * from the two limits, at block size 8: the largest power of two that both allow. */
static void pick_cost(unsigned *log2_n, uint32_t *p, uint64_t ops, uint64_t memory) {
    if (ops < 32768) ops = 32768;
    const uint64_t most = ops < memory / 32 ? ops / 32 : memory / 1024;
    *log2_n = 1;
    while (*log2_n < 63 && (uint64_t)1 << *log2_n <= most / 2) ++*log2_n;
    uint64_t product = ops < memory / 32 ? 8 : (ops / 4) >> *log2_n;
    if (product > 0x3fffffff) product = 0x3fffffff;
    *p = (uint32_t)(product / 8);
}

/* Xors what scrypt makes of the password into the last part of the key. */
static clef_status lock(unsigned char key[SECRET_BYTES], str password, const char *label,
                        clef_error *err) {
    unsigned log2_n = 0;
    uint32_t p = 0;
    pick_cost(&log2_n, &p, get_u64(key + OPS_AT), get_u64(key + MEMORY_AT));
    if (log2_n > 24 || p < 1 || p > 64)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "%s: trying a password costs 2^%u times %u, the limits are 2^24 and 1 to "
                         "64",
                         label, log2_n, p);
    unsigned char stream[LOCKED_BYTES];
    const clef_status s = scrypt(stream, sizeof stream, password.p, password.n, key + SALT_AT,
                                 SALT_BYTES, log2_n, 8, p, err);
    for (int i = 0; s == CLEF_OK && i < LOCKED_BYTES; i++) key[LOCKED_AT + i] ^= stream[i];
    wipe(stream, sizeof stream);
    return s;
}

/* Opens the key with a password that `ask` gives. */
static clef_status unlock(unsigned char key[SECRET_BYTES], const char *label,
                          minisign_password *ask, void *user, clef_error *err) {
    buf password = {0};
    clef_status s = ask(user, &password, err);
    if (s == CLEF_OK) s = buf_status(&password, err);
    if (s == CLEF_OK) s = lock(key, (str){password.p, password.n}, label, err);
    if (password.p != NULL) wipe(password.p, password.cap);
    buf_free(&password);
    return s;
}

static clef_status take_secret(minisign_secret *out, const unsigned char key[SECRET_BYTES],
                               bool locked, const char *label, clef_error *err) {
    const unsigned char *opened = key + LOCKED_AT;
    minisign_secret secret;
    memcpy(secret.public.number, opened, MINISIGN_NUMBER);
    memcpy(secret.seed, opened + SEED_AT, ED25519_SEED);
    clef_status s = ed25519_public(secret.public.key, secret.seed, err);
    if (s == CLEF_OK && memcmp(secret.public.key, opened + PUBLIC_AT, ED25519_PUBLIC) != 0)
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: %s", label,
                      locked ? "the password is wrong, or the key is damaged"
                             : "the two halves of the key do not belong together");
    if (s == CLEF_OK) *out = secret;
    wipe(&secret, sizeof secret);
    return s;
}

clef_status minisign_secret_read(minisign_secret *out, str file, const char *label,
                                 minisign_password *ask, void *user, clef_error *err) {
    unsigned char key[SECRET_BYTES];
    str line = {0};
    if (!take_line(&line, &file) || !take_prefix(&line, STR(UNTRUSTED)) ||
        !take_line(&line, &file) || file.n > 0)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: no secret key of minisign: wanted two lines, a comment and the key",
                         label);
    TRY(decode(key, sizeof key, line, label, "secret key", err));
    static const unsigned char no_password[2] = {0};
    const bool locked = memcmp(key + 2, no_password, 2) != 0;
    clef_status s = CLEF_OK;
    if (memcmp(key, legacy_name, 2) != 0 || memcmp(key + 4, check_name, 2) != 0 ||
        (locked && memcmp(key + 2, scrypt_name, 2) != 0))
        s = clef_fail(err, CLEF_ERR_UNSUPPORTED, "%s: a secret key of another kind", label);
    if (s == CLEF_OK && locked) s = unlock(key, label, ask, user, err);
    if (s == CLEF_OK) s = take_secret(out, key, locked, label, err);
    wipe(key, sizeof key);
    return s;
}

/* Fills in a new key, unlocked. */
static clef_status make_key(unsigned char key[SECRET_BYTES], clef_error *err) {
    unsigned char *opened = key + LOCKED_AT;
    memset(key, 0, SECRET_BYTES);
    memcpy(key, legacy_name, 2);
    memcpy(key + 4, check_name, 2);
    TRY(random_bytes(opened, PUBLIC_AT, err));
    return ed25519_public(opened + PUBLIC_AT, opened + SEED_AT, err);
}

static clef_status lock_new_key(unsigned char key[SECRET_BYTES], str password, uint64_t ops,
                                uint64_t memory, clef_error *err) {
    blake2b check;
    blake2b_begin(&check, CHECK_BYTES);
    blake2b_add(&check, key, 2);
    blake2b_add(&check, key + LOCKED_AT, CHECK_AT);
    blake2b_finish(&check, key + LOCKED_AT + CHECK_AT);
    wipe(&check, sizeof check);
    memcpy(key + 2, scrypt_name, 2);
    put_u64(key + OPS_AT, ops);
    put_u64(key + MEMORY_AT, memory);
    TRY(random_bytes(key + SALT_AT, SALT_BYTES, err));
    return lock(key, password, "the new key", err);
}

clef_status minisign_generate(buf *public, buf *secret, const str *password, uint64_t ops,
                              uint64_t memory, clef_error *err) {
    unsigned char key[SECRET_BYTES], shown[KEY_BYTES];
    clef_status s = make_key(key, err);
    memcpy(shown, legacy_name, 2);
    memcpy(shown + 2, key + LOCKED_AT, MINISIGN_NUMBER);
    memcpy(shown + 2 + MINISIGN_NUMBER, key + LOCKED_AT + PUBLIC_AT, ED25519_PUBLIC);
    if (s == CLEF_OK && password != NULL) s = lock_new_key(key, *password, ops, memory, err);
    if (s == CLEF_OK) {
        char id[MINISIGN_ID];
        minisign_key_id(id, shown + 2);
        buf_printf(public, UNTRUSTED "minisign public key %s\n", id);
        base64_encode(public, shown, sizeof shown);
        buf_add_char(public, '\n');
        buf_add_text(secret, UNTRUSTED "minisign encrypted secret key\n");
        base64_encode(secret, key, sizeof key);
        buf_add_char(secret, '\n');
        s = buf_status(public, err);
        if (s == CLEF_OK) s = buf_status(secret, err);
    }
    wipe(key, sizeof key);
    return s;
}

/* ---- signing ---- */

static clef_status hash_block(void *context, const void *bytes, size_t n, clef_error *err) {
    (void)err;
    blake2b_add(context, bytes, n);
    return CLEF_OK;
}

clef_status minisign_sign_file(buf *out, const minisign_secret *secret, const char *path,
                               str comment, clef_error *err) {
    if (comment.n > MAX_TRUSTED || !is_printable(comment))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "the comment is not printable UTF-8 of one line and at most %d bytes",
                         MAX_TRUSTED);
    blake2b b;
    unsigned char sum[BLAKE2B_MAX], head[SIGNED_BYTES], global[ED25519_SIGNATURE];
    blake2b_begin(&b, BLAKE2B_MAX);
    TRY(file_blocks(path, SIZE_MAX, hash_block, &b, err));
    blake2b_finish(&b, sum);
    memcpy(head, hashed_name, 2);
    memcpy(head + 2, secret->public.number, MINISIGN_NUMBER);
    unsigned char *signature = head + 2 + MINISIGN_NUMBER;
    TRY(ed25519_sign(signature, sum, sizeof sum, secret->seed, err));
    buf message = {0};
    clef_status s = global_message(&message, signature, comment, err);
    if (s == CLEF_OK) s = ed25519_sign(global, message.p, message.n, secret->seed, err);
    buf_free(&message);
    TRY(s);
    buf_add_text(out, UNTRUSTED "signature from minisign secret key\n");
    base64_encode(out, head, sizeof head);
    buf_add_text(out, "\n" TRUSTED);
    buf_add_str(out, comment);
    buf_add_char(out, '\n');
    base64_encode(out, global, sizeof global);
    buf_add_char(out, '\n');
    return buf_status(out, err);
}
