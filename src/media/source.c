/* source.c - from what a request names to the bytes of a picture or video file.
 *
 * Text is one of:
 *   data:[type][;name=value...];base64,....   the type is not believed: the bytes decide
 *   base64 without anything around it, which may be broken into lines, as in mail
 *   a URL with another scheme, which is refused: fetching for a stranger would open the network
 * that this process stands in. file: is read where the caller allows paths.
 *
 * A scheme is letters, digits, "+", "-" and "." before a colon (RFC 3986); no base64 text holds a
 * colon, so the two cannot be confused. */
#include "media/source.h"

#include "base/base64.h"
#include "base/file.h"

/* ---- base64 ---------------------------------------------------------------------------------- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_line_break(char c) {
    return c == '\n' || c == '\r';
}

/* Says why base64_decode refused the text, with or without its line breaks. */
static clef_status wrong_base64(str text, bool allow_paths, const char *where, clef_error *err) {
    const char *const wanted =
        allow_paths
            ? "wanted a data URL, a file: URL or base64 with the alphabet A-Z a-z 0-9 + / and = at "
              "the end"
            : "wanted a data URL or base64 with the alphabet A-Z a-z 0-9 + / and = at the end";
    size_t at = 0;
    while (at < text.n && (is_letter(text.p[at]) || is_digit(text.p[at]) || text.p[at] == '+' ||
                           text.p[at] == '/' || is_line_break(text.p[at])))
        at++;
    size_t end = text.n;
    while (end > at && is_line_break(text.p[end - 1])) end--;
    if (at == end || (text.p[at] == '=' && end - at <= 2 && text.p[end - 1] == '='))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: base64 of %zu characters that is cut or has bits behind its last "
                         "byte, wanted a multiple of 4 with = at the end",
                         where, text.n);
    const unsigned char c = (unsigned char)text.p[at];
    if (c > ' ' && c < 0x7F)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: byte %zu is '%c': %s", where, at, c, wanted);
    return clef_fail(err, CLEF_ERR_INPUT, "%s: byte %zu is 0x%02x: %s", where, at, c, wanted);
}

/* The lines of `text` joined. */
static void join_lines(buf *out, str text) {
    for (size_t i = 0; i < text.n;) {
        size_t end = i;
        while (end < text.n && !is_line_break(text.p[end])) end++;
        buf_add(out, text.p + i, end - i);
        i = end + 1;
    }
}

static clef_status decode_base64(buf *out, str text, bool allow_paths, const char *where,
                                 clef_error *err) {
    const bool lines = memchr(text.p, '\n', text.n) != NULL || memchr(text.p, '\r', text.n) != NULL;
    buf joined = {0};
    if (lines) join_lines(&joined, text);
    clef_status s = buf_status(&joined, err);
    if (s == CLEF_OK && !base64_decode(out, lines ? (str){joined.p, joined.n} : text))
        s = out->failed ? clef_fail_memory(err) : wrong_base64(text, allow_paths, where, err);
    buf_free(&joined);
    return s;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static char lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Bytes of the scheme in front of a colon; 0 when there is none. */
static size_t scheme_length(str text) {
    if (text.n == 0 || !is_letter(text.p[0])) return 0;
    size_t n = 1;
    while (n < text.n && (is_letter(text.p[n]) || is_digit(text.p[n]) || text.p[n] == '+' ||
                          text.p[n] == '-' || text.p[n] == '.'))
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
    if (is_digit(c)) return c - '0';
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
                             "URL%s",
                             where, (int)(scheme > 32 ? 32 : scheme), text.p,
                             allow_paths ? ", a file: URL or base64" : " or base64");
        TRY(data_payload(&text, rest, where, err));
    }
    if (text.n == 0) return clef_fail(err, CLEF_ERR_INPUT, "%s: empty", where);
    if (text.n / 4 > max_bytes / 3) return too_many_bytes(text.n / 4 * 3, max_bytes, where, err);
    return decode_base64(out, text, allow_paths, where, err);
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
