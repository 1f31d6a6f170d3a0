/* wire.c - see wire.h. RFC 9112, where it leaves a choice the stricter one:
 *
 *   - lines end in CR LF, nothing else; no CR, LF or NUL stands inside one;
 *   - no blank before a colon, no continuation lines, names are tokens;
 *   - one Content-Length of digits only, or Transfer-Encoding "chunked" alone, never both, and no
 *     Transfer-Encoding in HTTP/1.0;
 *   - one Host, and HTTP/1.1 needs it; the target begins with a slash, or with "http://" and a
 *     host without a user (or is "*");
 *   - a chunk's size is one to eight hexadecimal digits, then at most an extension.
 *
 * libmicrohttpd 0.9.75 takes every one of these otherwise, some in ways that cannot be seen from
 * its callbacks: LF alone as the end of chunk lines, CR dropped out of a value, two
 * Content-Lengths. */
#include "server/wire.h"

enum { MAX_CHUNK_LINES = 256 };

static wire_result bad(wire *w, int status, const char *reason) {
    w->state = WIRE_IN_NOTHING;
    w->status = status;
    w->reason = reason;
    return WIRE_BAD;
}

/* The characters of methods and header names. */
static bool is_token(str s) {
    static const char MARKS[] = "!#$%&'*+-.^_`|~";
    if (s.n == 0) return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && (c == '\0' || strchr(MARKS, c) == NULL))
            return false;
    }
    return true;
}

bool wire_split_target(str target, str *host, str *path) {
    static const char SCHEME[] = "http://";
    const size_t n_scheme = sizeof SCHEME - 1;
    *host = (str){NULL, 0};
    *path = target;
    if (str_equal(target, STR("*")) || (target.n > 0 && target.p[0] == '/')) return true;
    if (target.n < n_scheme || !str_same_word((str){target.p, n_scheme}, SCHEME)) return false;
    const str rest = {target.p + n_scheme, target.n - n_scheme};
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#') n++;
    *host = (str){rest.p, n};
    *path = rest.n > n && rest.p[n] == '/' ? (str){rest.p + n, rest.n - n} : STR("/");
    return n > 0 && memchr(rest.p, '@', n) == NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

static wire_result start_line(wire *w) {
    const str line = {w->line, w->n_line};
    const char *first = memchr(line.p, ' ', line.n);
    if (first == NULL) return bad(w, 400, "a request line without a target");
    const str method = {line.p, (size_t)(first - line.p)};
    const char *rest = first + 1;
    const char *second = memchr(rest, ' ', line.n - method.n - 1);
    if (second == NULL) return bad(w, 400, "a request line without a version");
    const str target = {rest, (size_t)(second - rest)};
    const str version = {second + 1, line.n - method.n - target.n - 2};
    if (!is_token(method)) return bad(w, 400, "a method that is no token");
    str host, path;
    if (!wire_split_target(target, &host, &path))
        return bad(w, 400, "a target that is neither a path nor http://HOST/PATH");
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] <= 0x20 || target.p[i] >= 0x7F)
            return bad(w, 400, "a target with other than printable ASCII characters");
    w->is_1_1 = str_equal(version, STR("HTTP/1.1"));
    if (!w->is_1_1 && !str_equal(version, STR("HTTP/1.0"))) {
        const bool other = version.n == 8 && memcmp(version.p, "HTTP/", 5) == 0 &&
                           version.p[5] >= '0' && version.p[5] <= '9' && version.p[6] == '.' &&
                           version.p[7] >= '0' && version.p[7] <= '9';
        return other ? bad(w, 505, "a version other than HTTP/1.1 and HTTP/1.0")
                     : bad(w, 400, "a request line without a version");
    }
    w->state = WIRE_IN_HEADERS;
    return WIRE_MORE;
}

static wire_result content_length(wire *w, str value) {
    if (w->length_given) return bad(w, 400, "two Content-Length headers");
    if (value.n == 0 || value.n > 18) return bad(w, 400, "a Content-Length that is no number");
    size_t length = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return bad(w, 400, "a Content-Length that is no number");
        length = length * 10 + (size_t)(value.p[i] - '0'); /* 18 digits fit */
    }
    w->length_given = true;
    w->left = length;
    return WIRE_MORE;
}

/* A header or trailer. Trailers change nothing, so they may not name what they cannot change. */
static wire_result header_line(wire *w) {
    const str line = {w->line, w->n_line};
    if (++w->n_headers > WIRE_MAX_HEADERS) return bad(w, 431, "too many headers");
    const char *colon = memchr(line.p, ':', line.n);
    if (colon == NULL) return bad(w, 400, "a header without a colon");
    const str name = {line.p, (size_t)(colon - line.p)};
    if (!is_token(name)) return bad(w, 400, "a header name that is no token");
    str value = {colon + 1, line.n - name.n - 1};
    for (size_t i = 0; i < value.n; i++) {
        const unsigned char c = (unsigned char)value.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return bad(w, 400, "a header value with a control character");
    }
    while (value.n > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
        value = (str){value.p + 1, value.n - 1};
    const bool length = str_same_word(name, "content-length"),
               coding = str_same_word(name, "transfer-encoding");
    const bool host = str_same_word(name, "host");
    if (w->state == WIRE_IN_TRAILERS)
        return length || coding || host ? bad(w, 400, "a trailer that frames a request")
                                        : WIRE_MORE;
    if (length) return content_length(w, value);
    if (coding) {
        if (w->chunked || !str_same_word(value, "chunked") || !w->is_1_1)
            return bad(w, 400, "a Transfer-Encoding other than chunked in HTTP/1.1");
        w->chunked = true;
    }
    if (host && ++w->n_hosts > 1) return bad(w, 400, "two Host headers");
    return WIRE_MORE;
}

static wire_result end_of_request(wire *w) {
    *w = (wire){.max_body = w->max_body};
    return WIRE_END;
}

static wire_result end_of_head(wire *w) {
    if (w->n_hosts == 0 && w->is_1_1) return bad(w, 400, "HTTP/1.1 without a Host header");
    if (w->chunked && w->length_given)
        return bad(w, 400, "Content-Length beside Transfer-Encoding");
    if (w->chunked) {
        w->state = WIRE_IN_SIZE;
        w->n_head = 0;
    } else if (w->left > 0) {
        w->state = WIRE_IN_BODY;
    } else {
        return end_of_request(w);
    }
    return WIRE_HEAD;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static wire_result size_line(wire *w) {
    enum { MAX_DIGITS = 8 };
    size_t size = 0, at = 0;
    while (at < w->n_line && hex_digit(w->line[at]) >= 0) {
        if (at == MAX_DIGITS) return bad(w, 400, "a chunk size of too many digits");
        size = size << 4 | (size_t)hex_digit(w->line[at++]);
    }
    if (at == 0 || (at < w->n_line && w->line[at] != ';'))
        return bad(w, 400, "a chunk without a size");
    for (; at < w->n_line; at++)
        if ((unsigned char)w->line[at] < 0x20 && w->line[at] != '\t')
            return bad(w, 400, "a chunk extension with a control character");
    if (size > w->max_body - w->n_body) return bad(w, 413, "a chunked body beyond the limit");
    w->n_body += size;
    w->left = size;
    w->state = size == 0 ? WIRE_IN_TRAILERS : WIRE_IN_CHUNK;
    w->n_head = 0; /* trailers have limits of their own */
    w->n_headers = 0;
    return WIRE_MORE;
}

/* A whole line is in w->line. */
static wire_result take_line(wire *w) {
    wire_result r = WIRE_MORE;
    switch (w->state) {
    case WIRE_IN_START: /* some clients send a line feed too many after a body */
        if (w->n_line > 0)
            r = start_line(w);
        else if (++w->n_empty > 1)
            r = bad(w, 400, "empty lines before a request");
        break;
    case WIRE_IN_HEADERS:
        r = w->n_line == 0 ? end_of_head(w) : header_line(w);
        break;
    case WIRE_IN_SIZE:
        r = size_line(w);
        break;
    case WIRE_IN_CHUNK_END:
        r = w->n_line == 0 ? WIRE_MORE : bad(w, 400, "a chunk longer than its size");
        if (r == WIRE_MORE) w->state = WIRE_IN_SIZE;
        break;
    case WIRE_IN_TRAILERS:
        r = w->n_line == 0 ? end_of_request(w) : header_line(w);
        break;
    case WIRE_IN_BODY:
    case WIRE_IN_CHUNK:
    case WIRE_IN_NOTHING:
        break;
    }
    w->n_line = 0;
    return r;
}

static wire_result too_long(wire *w) {
    if (w->state == WIRE_IN_START) return bad(w, 414, "a request line beyond the limit");
    if (w->state == WIRE_IN_SIZE || w->state == WIRE_IN_CHUNK_END)
        return bad(w, 400, "a chunk without a size");
    return bad(w, 431, "headers beyond the limit");
}

/* One byte of a line. The lines of one chunk count together. */
static wire_result line_byte(wire *w, char c) {
    const bool of_chunk = w->state == WIRE_IN_SIZE || w->state == WIRE_IN_CHUNK_END;
    if (++w->n_head > (of_chunk ? MAX_CHUNK_LINES : WIRE_MAX_HEAD)) return too_long(w);
    if (w->cr) {
        if (c != '\n') return bad(w, 400, "a carriage return without a line feed");
        w->cr = false;
        return take_line(w);
    }
    if (c == '\r') {
        w->cr = true;
        return WIRE_MORE;
    }
    if (c == '\n') return bad(w, 400, "a line feed without a carriage return");
    if (w->n_line == WIRE_MAX_LINE) return too_long(w);
    w->line[w->n_line++] = c;
    return WIRE_MORE;
}

/* ---- bytes --------------------------------------------------------------------------------- */

wire_result wire_feed(wire *w, const char *p, size_t n, size_t *used) {
    wire_result r = WIRE_MORE;
    size_t at = 0;
    while (at < n && r == WIRE_MORE) {
        if (w->state == WIRE_IN_NOTHING) {
            r = WIRE_BAD;
        } else if (w->state == WIRE_IN_BODY || w->state == WIRE_IN_CHUNK) {
            const size_t take = n - at < w->left ? n - at : w->left;
            at += take;
            w->left -= take;
            if (w->left > 0) break;
            if (w->state == WIRE_IN_CHUNK)
                w->state = WIRE_IN_CHUNK_END;
            else
                r = end_of_request(w);
        } else {
            r = line_byte(w, p[at++]);
        }
    }
    *used = at;
    return r;
}

bool wire_is_inside(const wire *w) {
    return w->state != WIRE_IN_START || w->n_line > 0 || w->cr;
}
