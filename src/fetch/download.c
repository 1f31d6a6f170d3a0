/* download.c - the rules of trying again.
 *
 * One source is asked up to five times without progress, with growing waits; an answer that will
 * not change (404, a wrong certificate, another size) sends to the next source at once. Every try
 * begins at the source's own URL, because the link that it redirects to may have expired. What an
 * earlier try left is asked for no more:
 *   206 of the right place   appended;
 *   200                      the server ignores ranges, or has another version: from the start;
 *   206 of another place, 416, or a 206 that was not asked for: from the start, without a range.
 * If-Range names a version only to the server that named it first (http.c); another server's bytes
 * may be appended, and the sum of the whole decides. When it is wrong, a file that was put together
 * from several tries is fetched from the same source once more, as a whole; then the source is
 * given up. */
#include "fetch/download.h"

#include <time.h>

/* A try that brings less than this is one without progress: a server could drip for ever. */
enum { PROGRESS = 1 << 16, TRIES = 5, MAX_WAIT_MS = 30000, MAX_ASKED_WAIT_S = 600 };

/* One file or text from one source. */
typedef struct {
    const download *d;
    part *p; /* NULL: a text */
    buf *text;
    size_t max_text;
    bool whole;    /* ranges do not work here */
    bool restart;  /* the answer was one to another range */
    bool fixed;    /* a failure that trying again does not change */
    bool local;    /* a failure of this machine's disk: no other source can help */
    uint64_t came; /* bytes of this try */
    bool joined;   /* the part holds bytes of more than one try */
    const char *url;
} transfer;

/* Waits in slices, so that a stop is noticed. */
static clef_status wait_ms(const download *d, uint64_t ms, clef_error *err) {
    const uint64_t slice = 100;
    for (uint64_t done = 0; done < ms; done += slice) {
        if (d->stop != NULL && d->stop(d->user))
            return clef_fail(err, CLEF_ERR_CANCELLED, "stopped");
        const uint64_t now = ms - done < slice ? ms - done : slice;
        nanosleep(&(struct timespec){.tv_nsec = (long)now * 1000000}, NULL);
    }
    return CLEF_OK;
}

/* After failed try number `tries` (from 1), whether and how long to wait for the next. CLEF_OK: try
 * again; else *err stays that of the try, or becomes the stop's. */
static clef_status wait_for_next(const download *d, clef_status failed, const http_reply *r,
                                 unsigned tries, clef_error *err) {
    if (tries >= TRIES || r->wait_s > MAX_ASKED_WAIT_S) return failed;
    const unsigned first = d->retry_ms > 0 ? d->retry_ms : 1000;
    uint64_t ms = (uint64_t)first << (tries - 1);
    if (ms > MAX_WAIT_MS) ms = MAX_WAIT_MS;
    if (r->wait_s > 0) ms = r->wait_s * 1000;
    if (d->told != NULL) d->told(d->user, 0, err->text);
    clef_error stopped = {0};
    const clef_status s = wait_ms(d, ms, &stopped);
    if (s != CLEF_OK) *err = stopped;
    return s;
}

/* ---- a text ---------------------------------------------------------------------------------- */

static clef_status begin_text(void *user, const http_reply *r, clef_error *err) {
    transfer *t = user;
    t->text->n = 0;
    if (r->status == 200) return CLEF_OK;
    t->fixed = true;
    return clef_fail(err, CLEF_ERR_IO, "%.*s: the server answered %ld, wanted 200",
                     HTTP_URL_ARG(t->url), r->status);
}

static clef_status add_text(void *user, const void *bytes, size_t n, clef_error *err) {
    transfer *t = user;
    if (n > t->max_text - t->text->n) {
        t->fixed = true;
        return clef_fail(err, CLEF_ERR_LIMIT, "%.*s: more than %zu bytes", HTTP_URL_ARG(t->url),
                         t->max_text);
    }
    buf_add(t->text, bytes, n);
    return buf_status(t->text, err);
}

clef_status download_text(const download *d, const char *url, size_t max_bytes, buf *out, buf *next,
                          clef_error *err) {
    clef_error own = {0};
    if (err == NULL) err = &own;
    buf text = {0};
    http_reply reply = {0};
    transfer t = {.d = d, .text = &text, .max_text = max_bytes, .url = url};
    const http_request request = {.url = url, .begin = begin_text, .body = add_text, .user = &t};
    clef_status s = CLEF_OK;
    for (unsigned tries = 1;; tries++) {
        s = http_get(d->http, &request, &reply, err);
        if (s == CLEF_OK || !reply.transient || t.fixed) break;
        s = wait_for_next(d, s, &reply, tries, err);
        if (s != CLEF_OK) break;
    }
    if (s == CLEF_OK) {
        buf_add(out, text.p, text.n);
        s = buf_status(out, err);
    }
    if (s == CLEF_OK && next != NULL) {
        buf_add(next, reply.next.p, reply.next.n);
        s = buf_status(next, err);
    }
    http_reply_free(&reply);
    buf_free(&text);
    return s;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Passes on what came of a call on the part. */
static clef_status on_disk(transfer *t, clef_status s) {
    if (s != CLEF_OK && s != CLEF_ERR_FORMAT && s != CLEF_ERR_LIMIT) t->local = t->fixed = true;
    return s;
}

/* The answer is not the file that is wanted, and will not be at the next try. */
#define REFUSE(t, ...) ((t)->fixed = true, clef_fail(err, CLEF_ERR_IO, __VA_ARGS__))

static clef_status wrong_range(transfer *t, const char *what, clef_error *err) {
    t->restart = true;
    return clef_fail(err, CLEF_ERR_IO, "%.*s: %s", HTTP_URL_ARG(t->url), what);
}

static clef_status begin_file(void *user, const http_reply *r, clef_error *err) {
    transfer *t = user;
    part *p = t->p;
    const uint64_t size = p->wanted.size;
    if (r->status == 206) {
        if (p->have == 0 || t->whole)
            return REFUSE(t, "%.*s: a part of the file came, wanted the whole",
                          HTTP_URL_ARG(t->url));
        if (!r->has_range || r->first != p->have || r->last >= size)
            return wrong_range(t, "another range came than was asked for", err);
        if (r->has_total && r->total != size)
            return REFUSE(t, "%.*s: has %llu bytes, wanted %llu", HTTP_URL_ARG(t->url),
                          (unsigned long long)r->total, (unsigned long long)size);
        t->joined = true;
    } else if (r->status == 200) {
        if (r->has_size && r->size != size)
            return REFUSE(t, "%.*s: has %llu bytes, wanted %llu", HTTP_URL_ARG(t->url),
                          (unsigned long long)r->size, (unsigned long long)size);
        if (p->have > 0) TRY(on_disk(t, part_restart(p, err)));
        t->joined = false;
    } else {
        return REFUSE(t, "%.*s: the server answered %ld, wanted 200 or 206", HTTP_URL_ARG(t->url),
                      r->status);
    }
    const str etag = {r->etag.p, r->etag.n}, origin = {r->origin.p, r->origin.n};
    if (str_equal(etag, (str){p->etag.p, p->etag.n}) &&
        str_equal(origin, (str){p->origin.p, p->origin.n}))
        return CLEF_OK;
    return on_disk(t, part_from(p, etag, origin, err));
}

static clef_status add_file(void *user, const void *bytes, size_t n, clef_error *err) {
    transfer *t = user;
    t->fixed = n > t->p->wanted.size - t->p->have;
    TRY(on_disk(t, part_write(t->p, bytes, n, err)));
    t->came += n;
    if (t->d->told != NULL) t->d->told(t->d->user, t->p->have, NULL);
    return CLEF_OK;
}

/* One try at one source. */
static clef_status try_once(transfer *t, http_reply *reply, clef_error *err) {
    part *p = t->p;
    t->restart = false;
    t->came = 0;
    if (t->whole && p->have > 0) TRY(on_disk(t, part_restart(p, err)));
    const http_request request = {.url = t->url,
                                  .from = p->have,
                                  .if_range = p->etag.n > 0 ? p->etag.p : NULL,
                                  .if_range_origin = p->origin.p,
                                  .begin = begin_file,
                                  .body = add_file,
                                  .user = t};
    clef_status s = http_get(t->d->http, &request, reply, err);
    if (s == CLEF_ERR_IO && reply->status == 416 && p->have > 0) t->restart = true;
    if (s == CLEF_OK && p->have < p->wanted.size) {
        reply->transient = true;
        s = clef_fail(err, CLEF_ERR_IO, "%.*s: ended after %llu of %llu bytes",
                      HTTP_URL_ARG(t->url), (unsigned long long)p->have,
                      (unsigned long long)p->wanted.size);
    }
    if (t->restart) {
        reply->transient = true;
        t->whole = true;
    }
    return s;
}

/* All tries at one source, up to a part of the right size. */
static clef_status from_source(transfer *t, clef_error *err) {
    http_reply reply = {0};
    clef_status s = CLEF_OK;
    for (unsigned tries = 1; t->p->have < t->p->wanted.size || t->p->wanted.size == 0; tries++) {
        s = try_once(t, &reply, err);
        if (s == CLEF_OK || t->fixed || !reply.transient) break;
        if (t->came >= PROGRESS) tries = 1;
        s = wait_for_next(t->d, s, &reply, tries, err);
        if (s != CLEF_OK) break;
    }
    http_reply_free(&reply);
    return s;
}

clef_status download_file(const download *d, const char *const *sources, size_t n_sources,
                          const char *path, part *p, clef_error *err) {
    clef_error own = {0};
    if (err == NULL) err = &own;
    clef_status s = clef_fail(err, CLEF_ERR_INPUT, "%s: no source is given", path);
    if (p->have > 0 && p->have == p->wanted.size) { /* a part that is complete needs no source */
        s = part_finish(p, err);
        if (s != CLEF_ERR_FORMAT) return s;
    }
    for (size_t i = 0; i < n_sources; i++) {
        buf url = {0};
        buf_add_text(&url, sources[i]);
        http_add_path(&url, str_of(path));
        s = buf_status(&url, err);
        transfer t = {.d = d, .p = p, .url = url.p, .joined = p->have > 0};
        if (s == CLEF_OK) s = from_source(&t, err);
        if (s == CLEF_OK) s = on_disk(&t, part_finish(p, err));
        if (s == CLEF_ERR_FORMAT && t.joined) {
            if (d->told != NULL) d->told(d->user, 0, err->text);
            s = from_source(&t, err);
            if (s == CLEF_OK) s = on_disk(&t, part_finish(p, err));
        }
        buf_free(&url);
        const bool source_failed = s == CLEF_ERR_IO || s == CLEF_ERR_FORMAT || s == CLEF_ERR_LIMIT;
        if (!source_failed || t.local) return s;
        if (i + 1 < n_sources && d->told != NULL) d->told(d->user, 0, err->text);
    }
    return s;
}
