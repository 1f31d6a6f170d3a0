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
 * Ed25519ph of RFC 8032); the older "Ed" signs the file itself. */
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
    SIGNED_BYTES = 2 + MINISIGN_NUMBER + ED25519_SIGNATURE
};

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
    if (memcmp(bytes, "Ed", 2) != 0)
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
    return memcmp(p->head, "ED", 2) == 0;
}

static clef_status check_algorithm(const parts *p, minisign_policy policy, const char *label,
                                   clef_error *err) {
    if (is_hashed(p)) return CLEF_OK;
    if (memcmp(p->head, "Ed", 2) != 0)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: made by an algorithm that is not minisign's",
                         label);
    if (policy == MINISIGN_LEGACY_TOO) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT,
                     "%s: a legacy signature (without prehashing), wanted one of minisign 0.10 or "
                     "later; --legacy allows it",
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
