/* http.h - one download over HTTPS: redirects, credentials, time limits, what a server may answer.
 * No trying again and no files: those are download.h's. The one module that knows libcurl. */
#ifndef FETCH_HTTP_H
#define FETCH_HTTP_H

#include "base/buf.h"

typedef struct http http;

/* All zero is the default. The strings and `user` have to outlive the http. */
typedef struct {
    const char *ca_file; /* PEM file of the authorities to trust; NULL: the system's */
    bool allow_http;     /* plain http:// too, redirects included */
    const char *token;   /* sent as a bearer token to the origin of token_url, and only by https */
    const char *token_url;    /* NULL: the token is never sent */
    unsigned connect_s;       /* seconds to connect; 0: 10 */
    unsigned stall_s;         /* seconds below 1,024 bytes a second; 0: 30 */
    bool (*stop)(void *user); /* asked a few times a second; true ends with CLEF_ERR_CANCELLED */
    void *user;
} http_options;

/* Connections are kept for the next request. One thread at a time. Close with http_close, which
 * accepts NULL. CLEF_ERR_INPUT for a token or a token_url that cannot be one. */
clef_status http_open(http **out, const http_options *options, clef_error *err);
void http_close(http *h);

/* What the last server of the chain said. {0} is safe to free. */
typedef struct {
    long status;   /* 0: no answer came */
    bool has_size; /* Content-Length was given */
    uint64_t size; /* of the body, not of the whole file */
    bool has_range;
    uint64_t first, last; /* of a 206's Content-Range */
    bool has_total;
    uint64_t total;  /* of Content-Range, of a 206 or a 416 */
    buf etag;        /* strong, with its quotes; empty when there is none or a weak one */
    buf origin;      /* "https://host:port" that gave the answer */
    buf next;        /* URL of Link: rel="next", absolute; empty: none */
    bool transient;  /* of a failure: trying again later may help */
    uint64_t wait_s; /* Retry-After; 0: not said */
} http_reply;

void http_reply_free(http_reply *r);

typedef struct {
    const char *url;
    uint64_t from; /* more than 0: ask for the bytes from there to the end */
    const char *if_range, *if_range_origin; /* send this etag to this origin; both may be NULL */
    /* For a 2xx answer: called once before the first byte of the body (there may be none), then for
     * each block. A failure ends the transfer and is passed on. */
    clef_status (*begin)(void *user, const http_reply *reply, clef_error *err);
    clef_status (*body)(void *user, const void *bytes, size_t n, clef_error *err);
    void *user;
} http_request;

/* Follows at most five redirects. CLEF_OK: a 2xx answer, complete as far as the server told its
 * size. Any other answer is CLEF_ERR_IO with its status in the reply; a failure of the connection
 * is CLEF_ERR_IO too. *reply is filled either way and has to be freed; it may be reused. */
clef_status http_get(http *h, const http_request *request, http_reply *reply, clef_error *err);

/* The URL for sentences: without its query, which may be a secret. */
#define HTTP_URL_ARG(url) (int)strcspn(url, "?#"), (url)

/* Appends `path` with everything but letters, digits and "-._~/" percent-encoded. */
void http_add_path(buf *url, str path);

/* Checks a URL given by a user or a manifest: a scheme that is allowed, a host, no credentials. */
clef_status http_check_url(const char *url, bool allow_http, clef_error *err);

#endif
