/* http.c - GET through libcurl, with every redirect followed by hand.
 *
 * libcurl could follow redirects itself. It is not let, because three things depend on each hop:
 * the bearer token goes to one origin (scheme, host and port) and to no other, not even to another
 * port of the same host; an etag says something only to the server that gave it; and a 403 means a
 * wrong token at the first server and an expired link at the second. CURLOPT_XOAUTH2_BEARER is set
 * or cleared before each hop, so there is no header that could be carried along.
 *
 * Traps:
 *   - content codings: none is asked for, and an answer with one is refused, because sizes and
 *     ranges would then count other bytes than the file's;
 *   - signed links hold a secret in their query: sentences show a URL without it;
 *   - a body may come with any status; only that of a 2xx answer reaches the caller. */
#include "fetch/http.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include <curl/curl.h>

enum { MAX_REDIRECTS = 5, MAX_URL = 16384, MAX_HEADERS = 1 << 16, MAX_OTHER_BODY = 1 << 16 };

struct http {
    CURL *curl;
    http_options options;
    buf token_origin;
    struct curl_slist *headers, *headers_if_range;
    char fault[CURL_ERROR_SIZE];
    /* of the request that runs */
    const http_request *request;
    http_reply *reply;
    clef_error *err;
    clef_status failed;  /* of a callback */
    bool begun;          /* the answer's head has been read */
    size_t header_bytes; /* of this hop */
    size_t other_bytes;  /* of a body that nobody wants */
};

void http_reply_free(http_reply *r) {
    buf_free(&r->etag);
    buf_free(&r->origin);
    buf_free(&r->next);
    *r = (http_reply){0};
}

void http_add_path(buf *url, str path) {
    for (size_t i = 0; i < path.n; i++) {
        const unsigned char c = (unsigned char)path.p[i];
        if (isalnum(c) || (c != '\0' && strchr("-._~/", c) != NULL))
            buf_add_char(url, (char)c);
        else
            buf_printf(url, "%%%02X", c);
    }
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Appends one part of a URL; an absent one adds nothing. */
static void add_part(buf *out, CURLU *url, CURLUPart part, unsigned flags) {
    char *text = NULL;
    if (curl_url_get(url, part, &text, flags) == CURLUE_OK) buf_add_text(out, text);
    curl_free(text);
}

/* Checks `url` and gives its origin, in small letters. */
static clef_status read_url(buf *origin, const char *url, bool allow_http, clef_error *err) {
    if (strlen(url) > MAX_URL)
        return clef_fail(err, CLEF_ERR_LIMIT, "%.60s...: a URL has at most %d bytes", url, MAX_URL);
    CURLU *parsed = curl_url();
    if (parsed == NULL) return clef_fail_memory(err);
    buf scheme = {0}, user = {0}, host = {0}, port = {0};
    const CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    if (code == CURLUE_OK) {
        add_part(&scheme, parsed, CURLUPART_SCHEME, 0);
        add_part(&user, parsed, CURLUPART_USER, 0);
        add_part(&user, parsed, CURLUPART_PASSWORD, 0);
        add_part(&host, parsed, CURLUPART_HOST, 0);
        add_part(&port, parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    }
    buf_printf(origin, "%s://%s:%s", scheme.n > 0 ? scheme.p : "", host.n > 0 ? host.p : "",
               port.n > 0 ? port.p : "");
    clef_status s =
        code == CURLUE_OUT_OF_MEMORY || scheme.failed || user.failed || host.failed || port.failed
            ? clef_fail_memory(err)
            : buf_status(origin, err);
    const bool plain = scheme.n == 4 && memcmp(scheme.p, "http", 4) == 0;
    const bool https = scheme.n == 5 && memcmp(scheme.p, "https", 5) == 0;
    if (s == CLEF_OK && (code != CURLUE_OK || host.n == 0))
        s = clef_fail(err, CLEF_ERR_INPUT, "%.*s: not a URL", HTTP_URL_ARG(url));
    else if (s == CLEF_OK && !https && !(plain && allow_http))
        s = clef_fail(err, CLEF_ERR_INPUT, "%.*s: wanted https%s", HTTP_URL_ARG(url),
                      plain ? "; --allow-http takes an unprotected server" : "");
    else if (s == CLEF_OK && user.n > 0)
        s = clef_fail(err, CLEF_ERR_INPUT, "a URL of %s holds a name or a password", origin->p);
    if (s == CLEF_OK)
        for (size_t i = 0; i < origin->n; i++)
            origin->p[i] = (char)tolower((unsigned char)origin->p[i]);
    curl_url_cleanup(parsed);
    buf_free(&scheme);
    buf_free(&user);
    buf_free(&host);
    buf_free(&port);
    return s;
}

clef_status http_check_url(const char *url, bool allow_http, clef_error *err) {
    buf origin = {0};
    const clef_status s = read_url(&origin, url, allow_http, err);
    buf_free(&origin);
    return s;
}

/* `target`, which may be relative to `base`, as an absolute URL. */
static clef_status resolve_url(buf *out, const char *base, const char *target, clef_error *err) {
    CURLU *parsed = curl_url();
    if (parsed == NULL) return clef_fail_memory(err);
    CURLUcode code = curl_url_set(parsed, CURLUPART_URL, base, 0);
    if (code == CURLUE_OK)
        code =
            curl_url_set(parsed, CURLUPART_URL, target, CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE);
    if (code == CURLUE_OK) add_part(out, parsed, CURLUPART_URL, 0);
    curl_url_cleanup(parsed);
    if (code == CURLUE_OUT_OF_MEMORY) return clef_fail_memory(err);
    if (code != CURLUE_OK)
        return clef_fail(err, CLEF_ERR_IO, "%.*s: the server points to '%.200s', which is no URL",
                         HTTP_URL_ARG(base), target);
    return buf_status(out, err);
}

/* ---- the head of an answer ------------------------------------------------------------------- */

/* The value of a header of the answer, or NULL. */
static const char *header(http *h, const char *name) {
    struct curl_header *found = NULL;
    if (curl_easy_header(h->curl, name, 0, CURLH_HEADER, -1, &found) != CURLHE_OK) return NULL;
    return found->value;
}

/* Reads digits into *out and moves past them. */
static bool read_digits(uint64_t *out, const char **at) {
    const char *p = *at;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    if (p == *at) return false;
    *at = p;
    *out = value;
    return true;
}

/* "bytes FIRST-LAST/TOTAL", where TOTAL may be a star, or "bytes * /TOTAL" without the blank. What
 * is neither leaves the reply as it is. */
static void read_content_range(http_reply *r, const char *text) {
    if (strncmp(text, "bytes ", 6) != 0) return;
    text += 6;
    uint64_t first = 0, last = 0, total = 0;
    const bool star = *text == '*';
    if (star) {
        text++;
    } else {
        if (!read_digits(&first, &text) || *text++ != '-') return;
        if (!read_digits(&last, &text) || last < first) return;
    }
    if (*text++ != '/') return;
    const bool unknown = strcmp(text, "*") == 0;
    if (!unknown && (!read_digits(&total, &text) || *text != '\0')) return;
    r->has_range = !star;
    r->first = first;
    r->last = last;
    r->has_total = !unknown;
    r->total = total;
}

/* A strong etag in quotes, short enough to be kept and sent back. */
static void read_etag(http_reply *r, const char *text) {
    const size_t n = strlen(text);
    if (n < 3 || n > 200 || text[0] != '"' || text[n - 1] != '"') return;
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~') return;
    buf_add(&r->etag, text, n);
}

/* The target of `<URL>; rel="next"`. The hub sends that link alone. */
static clef_status read_link(http *h, const char *url, const char *text, clef_error *err) {
    const char *end = strchr(text, '>');
    if (*text != '<' || end == NULL || strstr(end, "rel=\"next\"") == NULL) return CLEF_OK;
    buf target = {0};
    buf_add(&target, text + 1, (size_t)(end - text - 1));
    buf_add(&target, "", 0);
    clef_status s = buf_status(&target, err);
    if (s == CLEF_OK) s = resolve_url(&h->reply->next, url, target.n > 0 ? target.p : "", err);
    buf_free(&target);
    return s;
}

static clef_status read_head(http *h, clef_error *err) {
    http_reply *r = h->reply;
    char *url = NULL;
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &r->status);
    curl_easy_getinfo(h->curl, CURLINFO_EFFECTIVE_URL, &url);
    const char *text = header(h, "Content-Range");
    if (text != NULL) read_content_range(r, text);
    text = header(h, "Content-Length");
    r->has_size = text != NULL && read_digits(&r->size, &text) && *text == '\0';
    text = header(h, "ETag");
    if (text != NULL) read_etag(r, text);
    curl_off_t wait = 0;
    curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &wait);
    r->wait_s = wait > 0 ? (uint64_t)wait : 0;
    text = header(h, "Link");
    if (text != NULL) TRY(read_link(h, url, text, err));
    if (r->etag.failed) return clef_fail_memory(err);
    if (r->status / 100 != 2) return CLEF_OK;
    text = header(h, "Content-Encoding");
    if (text != NULL && strcmp(text, "identity") != 0)
        return clef_fail(err, CLEF_ERR_IO,
                         "%.*s: answered with the content coding '%.40s', wanted the plain bytes",
                         HTTP_URL_ARG(url), text);
    return h->request->begin(h->request->user, r, err);
}

/* ---- libcurl's callbacks --------------------------------------------------------------------- */

static bool begin_body(http *h) {
    if (h->begun) return h->failed == CLEF_OK;
    h->begun = true;
    h->failed = read_head(h, h->err);
    return h->failed == CLEF_OK;
}

/* Asked for every block, and by on_step when none comes. */
static bool is_stopped(http *h) {
    if (h->options.stop == NULL || !h->options.stop(h->options.user)) return false;
    h->failed = clef_fail(h->err, CLEF_ERR_CANCELLED, "stopped");
    return true;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *user) {
    http *h = user;
    (void)bytes;
    h->header_bytes += size * n;
    if (h->header_bytes <= MAX_HEADERS) return size * n;
    h->failed = clef_fail(h->err, CLEF_ERR_LIMIT, "%.*s: more than %d bytes of headers",
                          HTTP_URL_ARG(h->request->url), MAX_HEADERS);
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
    http *h = user;
    if (is_stopped(h) || !begin_body(h)) return 0;
    n *= size;
    if (h->reply->status / 100 != 2) {
        h->other_bytes += n;
        return h->other_bytes <= MAX_OTHER_BODY ? n : 0;
    }
    h->failed = h->request->body(h->request->user, bytes, n, h->err);
    return h->failed == CLEF_OK ? n : 0;
}

static int on_step(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    http *h = user;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return is_stopped(h);
}

/* ---- opening and one hop --------------------------------------------------------------------- */

static clef_status set_up(http *h, clef_error *err) {
    const http_options *o = &h->options;
    CURL *c = h->curl;
    const long connect_s = o->connect_s > 0 ? (long)o->connect_s : 10;
    const long stall_s = o->stall_s > 0 ? (long)o->stall_s : 30;
    const CURLcode codes[] = {
        curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, o->allow_http ? "https,http" : "https"),
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L),
        curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L),
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L),
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L),
        curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2),
        o->ca_file == NULL ? CURLE_OK : curl_easy_setopt(c, CURLOPT_CAINFO, o->ca_file),
        o->ca_file == NULL ? CURLE_OK : curl_easy_setopt(c, CURLOPT_CAPATH, NULL),
        curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1),
        curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, connect_s),
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1024L),
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, stall_s),
        curl_easy_setopt(c, CURLOPT_USERAGENT, "clef/" CLEF_VERSION),
        curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 1L << 18),
        curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->fault),
        curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header),
        curl_easy_setopt(c, CURLOPT_HEADERDATA, h),
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body),
        curl_easy_setopt(c, CURLOPT_WRITEDATA, h),
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L),
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_step),
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, h),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] == CURLE_OUT_OF_MEMORY) return clef_fail_memory(err);
        if (codes[i] != CURLE_OK)
            return clef_fail(err, CLEF_ERR_UNSUPPORTED, "libcurl %s: %s", curl_version(),
                             curl_easy_strerror(codes[i]));
    }
    h->headers = curl_slist_append(NULL, "Accept-Encoding: identity");
    return h->headers == NULL ? clef_fail_memory(err) : CLEF_OK;
}

clef_status http_open(http **out, const http_options *options, clef_error *err) {
    if (options->token != NULL) {
        const char *t = options->token;
        while (*t > ' ' && *t <= '~') t++;
        if (*t != '\0' || *options->token == '\0')
            return clef_fail(err, CLEF_ERR_INPUT,
                             "the access token holds a blank or another byte that no token has");
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return clef_fail_memory(err);
    http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        curl_global_cleanup();
        return clef_fail_memory(err);
    }
    h->options = *options;
    h->curl = curl_easy_init();
    clef_status s = h->curl == NULL ? clef_fail_memory(err) : set_up(h, err);
    if (s == CLEF_OK && options->token != NULL && options->token_url != NULL)
        s = read_url(&h->token_origin, options->token_url, options->allow_http, err);
    /* Whoever listens on the way could use it. */
    if (h->token_origin.n > 0 && strncmp(h->token_origin.p, "https:", 6) != 0)
        h->token_origin.n = 0;
    if (s != CLEF_OK) {
        http_close(h);
        return s;
    }
    *out = h;
    return CLEF_OK;
}

void http_close(http *h) {
    if (h == NULL) return;
    curl_easy_cleanup(h->curl);
    curl_slist_free_all(h->headers);
    curl_slist_free_all(h->headers_if_range);
    buf_free(&h->token_origin);
    free(h);
    curl_global_cleanup();
}

static bool same_text(const buf *a, const char *b) {
    return b != NULL && str_equal((str){a->p, a->n}, str_of(b));
}

/* Sets what differs from hop to hop: URL, credentials, the range and its condition. */
static clef_status set_hop(http *h, const char *url, clef_error *err) {
    const http_request *q = h->request;
    const http_reply *r = h->reply;
    const bool trusted = h->token_origin.n > 0 && same_text(&r->origin, h->token_origin.p);
    char range[32];
    curl_slist_free_all(h->headers_if_range);
    h->headers_if_range = NULL;
    if (q->from > 0 && q->if_range != NULL && same_text(&r->origin, q->if_range_origin)) {
        buf line = {0};
        buf_printf(&line, "If-Range: %s", q->if_range);
        TRY(buf_status(&line, err));
        h->headers_if_range = curl_slist_append(NULL, line.p);
        buf_free(&line);
        struct curl_slist *all =
            h->headers_if_range == NULL
                ? NULL
                : curl_slist_append(h->headers_if_range, "Accept-Encoding: identity");
        if (all == NULL) return clef_fail_memory(err);
    }
    snprintf(range, sizeof range, "%llu-", (unsigned long long)q->from);
    const CURLcode codes[] = {
        curl_easy_setopt(h->curl, CURLOPT_URL, url),
        curl_easy_setopt(h->curl, CURLOPT_HTTPAUTH, trusted ? CURLAUTH_BEARER : CURLAUTH_NONE),
        curl_easy_setopt(h->curl, CURLOPT_XOAUTH2_BEARER, trusted ? h->options.token : NULL),
        curl_easy_setopt(h->curl, CURLOPT_RANGE, q->from > 0 ? range : NULL),
        curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER,
                         h->headers_if_range != NULL ? h->headers_if_range : h->headers),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] != CURLE_OK) return clef_fail_memory(err);
    return CLEF_OK;
}

/* Whether a failure of the connection may pass: not when the other side is not who it has to be. */
static bool may_pass(CURLcode code) {
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
        return false;
    default:
        return true;
    }
}

/* One request and its answer. *location stays good until the next hop; NULL: no redirect. */
static clef_status hop(http *h, const char *url, const char **location, clef_error *err) {
    h->failed = CLEF_OK;
    h->begun = false;
    h->header_bytes = h->other_bytes = 0;
    h->fault[0] = '\0';
    TRY(set_hop(h, url, err));
    const CURLcode code = curl_easy_perform(h->curl);
    if (code == CURLE_OK) begin_body(h); /* an answer without a body */
    if (h->failed != CLEF_OK) return h->failed;
    const long status = h->reply->status;
    *location = status / 100 == 3 ? header(h, "Location") : NULL;
    if (code == CURLE_OK || (h->begun && status / 100 != 2)) return CLEF_OK;
    if (code == CURLE_OUT_OF_MEMORY) return clef_fail_memory(err);
    h->reply->transient = may_pass(code);
    return clef_fail(err, CLEF_ERR_IO, "%.*s: %s", HTTP_URL_ARG(url),
                     h->fault[0] != '\0' ? h->fault : curl_easy_strerror(code));
}

/* The sentence for an answer that is not the file. `elsewhere`: not from the server that was asked
 * first. */
static clef_status refuse_status(http *h, const char *url, bool elsewhere, clef_error *err) {
    http_reply *r = h->reply;
    const char *said = header(h, "X-Error-Message");
    const char *hint = "";
    r->transient = r->status == 408 || r->status == 429 || r->status / 100 == 5;
    if (r->status == 401 || r->status == 403 || r->status == 410) {
        /* Links to a content host expire; the next try gets a new one. */
        r->transient = elsewhere;
        if (!elsewhere && r->status != 410)
            hint = "; a gated or private model needs HF_TOKEN with the right to read it";
    }
    char wait[48] = "";
    if (r->wait_s > 0)
        snprintf(wait, sizeof wait, " and asks to wait %llu s", (unsigned long long)r->wait_s);
    return clef_fail(err, CLEF_ERR_IO, "%.*s: the server answered %ld%s%s%.200s%s%s",
                     HTTP_URL_ARG(url), r->status, wait, said == NULL ? "" : " (",
                     said == NULL ? "" : said, said == NULL ? "" : ")", hint);
}

clef_status http_get(http *h, const http_request *request, http_reply *reply, clef_error *err) {
    h->request = request;
    h->reply = reply;
    h->err = err;
    buf url = {0}, next = {0}, asked = {0}; /* the last: the origin of the request */
    buf_add_text(&url, request->url);
    clef_status s = buf_status(&url, err);
    if (s == CLEF_OK) s = read_url(&asked, url.p, h->options.allow_http, err);
    for (unsigned hops = 0; s == CLEF_OK; hops++) {
        http_reply_free(reply);
        const char *location = NULL;
        assert(url.p != NULL); /* both buffers hold text whenever the status is CLEF_OK */
        s = read_url(&reply->origin, url.p, h->options.allow_http, err);
        if (s == CLEF_OK) s = hop(h, url.p, &location, err);
        if (s != CLEF_OK || reply->status / 100 == 2) break;
        if (location == NULL) {
            s = refuse_status(h, url.p, !same_text(&reply->origin, asked.p), err);
        } else if (hops == MAX_REDIRECTS) {
            s = clef_fail(err, CLEF_ERR_IO, "%.*s: more than %d redirects",
                          HTTP_URL_ARG(request->url), MAX_REDIRECTS);
        } else {
            next.n = 0;
            s = resolve_url(&next, url.p, location, err);
            const buf old = url;
            url = next;
            next = old;
        }
    }
    buf_free(&url);
    buf_free(&next);
    buf_free(&asked);
    h->request = NULL;
    return s;
}
