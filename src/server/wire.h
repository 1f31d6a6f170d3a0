/* wire.h - the framing of HTTP/1.1 requests, held strictly: where one ends and the next begins.
 *
 * Bytes are fed in as they come and judged before anything else reads them. What this passes is
 * read in one way only: by libmicrohttpd behind it, by a proxy before it. */
#ifndef SERVER_WIRE_H
#define SERVER_WIRE_H

#include "base/str.h"

enum {
    WIRE_MAX_LINE = 8192, /* a request line (414) or a header (431) */
    WIRE_MAX_HEAD = 16384,
    WIRE_MAX_HEADERS = 100
};

typedef enum {
    WIRE_MORE, /* everything was taken; the request goes on */
    WIRE_HEAD, /* taken up to the end of a head; there may be more bytes */
    WIRE_END,  /* taken up to the end of a request, head and body */
    WIRE_BAD   /* not a request: see status and reason; nothing may follow */
} wire_result;

/* {.max_body = N} is a wire before its first request. Bytes of a chunked body are counted here; a
 * Content-Length beyond the limit is for the routes to refuse, who know the path. */
typedef struct {
    size_t max_body;
    enum {
        WIRE_IN_START,
        WIRE_IN_HEADERS,
        WIRE_IN_BODY,
        WIRE_IN_SIZE,
        WIRE_IN_CHUNK,
        WIRE_IN_CHUNK_END,
        WIRE_IN_TRAILERS,
        WIRE_IN_NOTHING
    } state;
    char line[WIRE_MAX_LINE]; /* the line so far, without its end */
    size_t n_line, n_head;
    bool cr; /* the last byte was a carriage return, not in `line` */
    bool is_1_1, chunked, length_given;
    unsigned n_headers, n_hosts, n_empty;
    size_t left;   /* of the body or chunk */
    size_t n_body; /* of a chunked body so far */
    int status;    /* WIRE_BAD: 400, 413, 414, 431 or 505 */
    const char *reason;
} wire;

/* Takes bytes up to the next border; *used tells how many. */
wire_result wire_feed(wire *w, const char *p, size_t n, size_t *used);

/* Splits a target in its absolute form, "http://HOST/PATH": an empty path is "/". Of any other
 * target *host is {NULL, 0} and *path all of it. False when it is neither "*", a path, nor an http
 * URL with a host and without a user. A query stays behind the path; what stands between an empty
 * path and the end is dropped. */
bool wire_split_target(str target, str *host, str *path);

/* Whether a request was begun and has not ended. */
bool wire_is_inside(const wire *w);

#endif
