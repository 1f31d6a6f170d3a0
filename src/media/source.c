/* source.c - from what a request names to the bytes of a picture or video file.
 *
 * Text is one of:
 *   data:[type][;name=value...];base64,....   the type is not believed: the bytes decide
 *   base64 without anything around it
 *   a URL with another scheme, which is refused: fetching for a stranger would open the network
 * that this process stands in. file: is read where the caller allows paths.
 *
 * A scheme is letters, digits, "+", "-" and "." before a colon (RFC 3986); no base64 text holds a
 * colon, so the two cannot be confused. */
#include "media/source.h"

#include "base/file.h"

/* ---- base64 ---------------------------------------------------------------------------------- */

enum { NOT_BASE64 = 255, GROUP = 4 };

static uint8_t base64_value(unsigned char c) {
    if (c >= 'A' && c <= 'Z') return (uint8_t)(c - 'A');
    if (c >= 'a' && c <= 'z') return (uint8_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9') return (uint8_t)(c - '0' + 52);
    if (c == '+') return 62;
    if (c == '/') return 63;
    return NOT_BASE64;
}

static clef_status wrong_byte(str text, size_t at, const char *where, clef_error *err) {
    const unsigned char c = (unsigned char)text.p[at];
    if (c > ' ' && c < 0x7F)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: byte %zu is '%c': wanted a data URL or base64 with the alphabet A-Z "
                         "a-z 0-9 + / and = at the end",
                         where, at, c);
    return clef_fail(
        err, CLEF_ERR_INPUT,
        "%s: byte %zu is 0x%02x: wanted a data URL or base64 with the alphabet A-Z a-z "
        "0-9 + / and = at the end",
        where, at, c);
}

/* Decodes n characters without padding, a multiple of GROUP but in the last call. Returns how many
 * of them are good. */
static size_t decode_groups(uint8_t *out, const unsigned char *in, size_t n,
                            const uint8_t table[256]) {
    size_t at = 0;
    for (; at + GROUP <= n; at += GROUP, out += 3) {
        const uint8_t a = table[in[at]], b = table[in[at + 1]], c = table[in[at + 2]],
                      d = table[in[at + 3]];
        if ((a | b | c | d) > 63) break;
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
    }
    while (at < n && table[in[at]] != NOT_BASE64) at++;
    return at;
}

/* Writes the one or two bytes that 2 or 3 last characters hold; false when bits are left over. */
static bool decode_rest(uint8_t *out, const unsigned char *in, size_t n, const uint8_t table[256]) {
    const uint8_t a = table[in[0]], b = table[in[1]];
    out[0] = (uint8_t)(a << 2 | b >> 4);
    if (n == 2) return (b & 15) == 0;
    const uint8_t c = table[in[2]];
    out[1] = (uint8_t)(b << 4 | c >> 2);
    return (c & 3) == 0;
}

clef_status source_base64(buf *out, str text, const char *where, clef_error *err) {
    uint8_t table[256];
    for (unsigned i = 0; i < sizeof table; i++) table[i] = base64_value((unsigned char)i);
    const unsigned char *in = (const unsigned char *)text.p;
    size_t n = text.n;
    while (n > 0 && text.n - n < 2 && in[n - 1] == '=') n--;
    uint8_t block[3 * 1024];
    const size_t whole = n - n % GROUP;
    for (size_t at = 0; at < whole;) {
        const size_t most = sizeof block / 3 * GROUP;
        const size_t take = whole - at < most ? whole - at : most;
        const size_t good = decode_groups(block, in + at, take, table);
        if (good < take) return wrong_byte(text, at + good, where, err);
        buf_add(out, block, take / GROUP * 3);
        at += take;
    }
    for (size_t at = whole; at < n; at++)
        if (table[in[at]] == NOT_BASE64) return wrong_byte(text, at, where, err);
    if (text.n % GROUP != 0 || n % GROUP == 1)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: base64 of %zu characters, wanted a multiple of 4 with = at the end",
                         where, text.n);
    if (n > whole) {
        if (!decode_rest(block, in + whole, n - whole, table))
            return clef_fail(err, CLEF_ERR_INPUT, "%s: base64 with bits behind its last byte",
                             where);
        buf_add(out, block, n - whole - 1);
    }
    return buf_status(out, err);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Bytes of the scheme in front of a colon; 0 when there is none. */
static size_t scheme_length(str text) {
    if (text.n == 0 || !is_letter(text.p[0])) return 0;
    size_t n = 1;
    while (n < text.n && (is_letter(text.p[n]) || (text.p[n] >= '0' && text.p[n] <= '9') ||
                          text.p[n] == '+' || text.p[n] == '-' || text.p[n] == '.'))
        n++;
    return n < text.n && text.p[n] == ':' ? n : 0;
}

/* Whether `text` is `word`, which is in small letters, in letters of any size. */
static bool same_word(str text, str word) {
    if (text.n != word.n) return false;
    for (size_t i = 0; i < word.n; i++)
        if (lower(text.p[i]) != word.p[i]) return false;
    return true;
}

/* The base64 of a data URL, given what stands behind "data:". */
static clef_status data_payload(str *out, str rest, const char *where, clef_error *err) {
    static const char *const WANTED = "wanted data:image/...;base64,...";
    const char *comma = rest.n == 0 ? NULL : memchr(rest.p, ',', rest.n);
    if (comma == NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a data URL without a comma, %s", where, WANTED);
    const size_t head = (size_t)(comma - rest.p);
    const str mark = STR(";base64");
    if (head < mark.n || !same_word((str){comma - mark.n, mark.n}, mark))
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a data URL that is not base64, %s", where,
                         WANTED);
    *out = (str){comma + 1, rest.n - head - 1};
    return CLEF_OK;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = lower(c);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* The path of a file: URL, given what stands behind "file:"; a host other than none or localhost is
 * refused. */
static clef_status file_url_path(buf *path, str rest, const char *where, clef_error *err) {
    if (rest.n >= 2 && rest.p[0] == '/' && rest.p[1] == '/') {
        rest = (str){rest.p + 2, rest.n - 2};
        const str local = STR("localhost");
        if (rest.n >= local.n && same_word((str){rest.p, local.n}, local))
            rest = (str){rest.p + local.n, rest.n - local.n};
        if (rest.n == 0 || rest.p[0] != '/')
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: a file: URL with a host, wanted file:///path", where);
    }
    for (size_t i = 0; i < rest.n; i++) {
        char c = rest.p[i];
        if (c == '%') {
            const int high = i + 2 < rest.n ? hex_value(rest.p[i + 1]) : -1;
            const int low = high < 0 ? -1 : hex_value(rest.p[i + 2]);
            if (low < 0)
                return clef_fail(err, CLEF_ERR_INPUT,
                                 "%s: a %% in a file: URL needs two hex digits behind it", where);
            c = (char)(high * 16 + low);
            i += 2;
        }
        buf_add_char(path, c);
    }
    return buf_status(path, err);
}

/* ---- files and texts ------------------------------------------------------------------------- */

static clef_status read_path(buf *out, str path, size_t max_bytes, const char *where,
                             clef_error *err) {
    if (path.n == 0 || memchr(path.p, '\0', path.n) != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: an empty path or one with a zero byte", where);
    buf name = {0};
    buf_add_str(&name, path);
    clef_error inner = {0};
    clef_status s = buf_status(&name, &inner);
    if (s == CLEF_OK) s = file_read(out, name.p, max_bytes, &inner);
    buf_free(&name);
    return s == CLEF_OK ? CLEF_OK : clef_fail(err, s, "%s: %s", where, inner.text);
}

static clef_status read_file_url(buf *out, str rest, size_t max_bytes, const char *where,
                                 clef_error *err) {
    buf path = {0};
    clef_status s = file_url_path(&path, rest, where, err);
    if (s == CLEF_OK) s = read_path(out, (str){path.p, path.n}, max_bytes, where, err);
    buf_free(&path);
    return s;
}

static clef_status too_many_bytes(size_t n, size_t max_bytes, const char *where, clef_error *err) {
    return clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu bytes, the limit is %zu", where, n, max_bytes);
}

static clef_status read_text(buf *out, str text, size_t max_bytes, bool allow_paths,
                             const char *where, clef_error *err) {
    const size_t scheme = scheme_length(text);
    if (scheme > 0) {
        const str name = {text.p, scheme}, rest = {text.p + scheme + 1, text.n - scheme - 1};
        if (allow_paths && same_word(name, STR("file")))
            return read_file_url(out, rest, max_bytes, where, err);
        if (!same_word(name, STR("data")))
            return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                             "%s: a URL of scheme '%.*s': pictures are not fetched, wanted a data "
                             "URL or base64",
                             where, (int)(scheme > 32 ? 32 : scheme), text.p);
        TRY(data_payload(&text, rest, where, err));
    }
    if (text.n == 0) return clef_fail(err, CLEF_ERR_INPUT, "%s: empty", where);
    if (text.n / GROUP > max_bytes / 3)
        return too_many_bytes(text.n / GROUP * 3, max_bytes, where, err);
    return source_base64(out, text, where, err);
}

clef_status source_bytes(str *out, buf *storage, const media_ref *ref, size_t max_bytes,
                         bool allow_paths, const char *where, clef_error *err) {
    switch (ref->form) {
    case MEDIA_BYTES:
        if (ref->data.n > max_bytes) return too_many_bytes(ref->data.n, max_bytes, where, err);
        *out = ref->data;
        break;
    case MEDIA_PATH:
        if (!allow_paths)
            return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                             "%s: paths are not read here, wanted a data URL or base64", where);
        TRY(read_path(storage, ref->data, max_bytes, where, err));
        *out = (str){storage->p, storage->n};
        break;
    default:
        TRY(read_text(storage, ref->data, max_bytes, allow_paths, where, err));
        *out = (str){storage->p, storage->n};
    }
    if (out->n == 0) return clef_fail(err, CLEF_ERR_INPUT, "%s: empty", where);
    return CLEF_OK;
}
