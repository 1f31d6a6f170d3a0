/* httpd.c - see httpd.h. A thread for each connection: it parses, waits for the engine and writes
 * the answer, so a route is ordinary code that blocks.
 *
 * The library decodes chunks, answers Expect: 100-continue, keeps connections alive and writes the
 * answer's head. What it takes too lightly was refused by wire.h before; the paths are left as they
 * were sent. A reply made from the head alone ends the connection when a body follows. */
#include "server/httpd.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cpu.h"
#include "server/wire.h"

enum { THREAD_STACK = 512 << 10, CONNECTION_MEMORY = 64 << 10, MAX_DESCRIPTORS = 1 << 20 };

struct httpd_link {
    atomic_bool left;
    atomic_uint answered;
    atomic_int holders; /* who called httpd_serve, and the connection, begun or waiting to */
};

struct httpd {
    struct MHD_Daemon *daemon;
    service *s;
    _Atomic(httpd_link *)
        *links; /* [n_links] of connections that have yet to begin, by descriptor */
    size_t n_links;
};

/* One request. */
typedef struct {
    service *s;
    call c;
    reply r;
    http_header *headers;
    size_t cap_headers;
    buf body;
    httpd_link *link;
    bool failed; /* no memory for a header or the body */
} exchange;

static enum MHD_Result add_header(void *user, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len) {
    exchange *e = user;
    (void)kind;
    http_header *headers =
        array_grow(e->headers, &e->cap_headers, e->c.n_headers + 1, sizeof *headers);
    if (headers == NULL) {
        e->failed = true;
        return MHD_NO;
    }
    e->headers = headers;
    if (value == NULL) value = "";
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--; /* the library leaves blanks at the end */
    headers[e->c.n_headers++] = (http_header){{name, name_len}, {value, value_len}};
    return MHD_YES;
}

static bool has_left(void *user) {
    const exchange *e = user;
    return atomic_load(&e->link->left);
}

static exchange *exchange_new(service *s, struct MHD_Connection *connection, const char *method,
                              const char *path) {
    exchange *e = calloc(1, sizeof *e);
    if (e == NULL) return NULL;
    e->s = s;
    e->link =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    e->c = (call){.method = str_of(method),
                  .gone = has_left,
                  .gone_user = e,
                  .started = cpu_seconds(),
                  .queue_s = -1};
    wire_split_target(str_of(path), &e->c.host, &e->c.path); /* wire.c has refused other targets */
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, add_header, e);
    e->c.headers = e->headers;
    call_set_id(&e->c);
    atomic_fetch_add(&s->counts.in_flight, 1);
    return e;
}

static void exchange_free(exchange *e) {
    atomic_fetch_sub(&e->s->counts.in_flight, 1);
    service_let_go(e->s, &e->c);
    buf_free(&e->body);
    reply_free(&e->r);
    free(e->headers);
    free(e);
}

/* The lines of r->headers; the buffer is cut up. */
static bool add_headers(struct MHD_Response *response, buf *lines) {
    char *at = lines->p;
    while (at != NULL && *at != '\0') {
        char *colon = strstr(at, ": "), *end = strstr(at, "\r\n");
        if (colon == NULL || end == NULL) return false;
        *colon = *end = '\0';
        if (MHD_add_response_header(response, at, colon + 2) != MHD_YES) return false;
        at = end + 2;
    }
    return true;
}

static enum MHD_Result send_reply(exchange *e, struct MHD_Connection *connection) {
    reply *r = &e->r;
    service_finish_headers(e->s, &e->c, r);
    service_log(e->s, &e->c, r);
    atomic_fetch_add(&e->link->answered, 1);
    if (r->abandon) return MHD_NO;
    struct MHD_Response *response;
    if (r->fixed.p != NULL) {
        const union {
            const char *ours;
            void *theirs; /* which is only read */
        } text = {r->fixed.p};
        response = MHD_create_response_from_buffer(r->fixed.n, text.theirs, MHD_RESPMEM_PERSISTENT);
    } else {
        const size_t n = r->body.n;
        char *text = buf_take(&r->body);
        if (text == NULL) return MHD_NO;
        response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
        if (response == NULL) free(text);
    }
    if (response == NULL) return MHD_NO;
    const bool body = r->status != MHD_HTTP_NO_CONTENT;
    const bool stopping = atomic_load(&e->s->state) == SERVICE_STOPPING;
    const char *type = r->type == NULL ? "application/json" : r->type;
    enum MHD_Result done = MHD_NO;
    if ((!body || MHD_add_response_header(response, "Content-Type", type) == MHD_YES) &&
        (!stopping || MHD_add_response_header(response, "Connection", "close") == MHD_YES) &&
        add_headers(response, &r->headers))
        done = MHD_queue_response(connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return done;
}

static void take_body(exchange *e, const char *p, size_t n) {
    if (e->failed || e->body.n + n > e->s->rules.max_body || !service_hold(e->s, &e->c, n)) {
        e->failed = true;
        return;
    }
    buf_add(&e->body, p, n);
    e->failed = e->body.failed;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **state) {
    httpd *h = user;
    exchange *e = *state;
    (void)version;
    if (e == NULL) {
        e = exchange_new(h->s, connection, method, path);
        if (e == NULL) return MHD_NO;
        *state = e;
        return service_head(h->s, &e->c, &e->r) ? send_reply(e, connection) : MHD_YES;
    }
    if (*data_len > 0) {
        take_body(e, data, *data_len);
        *data_len = 0;
        return MHD_YES;
    }
    if (e->failed) {
        reply_error(&e->r, 503, reply_error_type(503), "The server is short of memory");
    } else if (service_decode(h->s, &e->c, &e->body, &e->r)) {
        e->c.body = (str){e->body.p, e->body.n};
        service_answer(h->s, &e->c, &e->r);
    }
    return send_reply(e, connection);
}

static void on_end(void *user, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why) {
    (void)user;
    (void)connection;
    (void)why;
    if (*state != NULL) exchange_free(*state);
    *state = NULL;
}

static void release(httpd_link *l) {
    if (atomic_fetch_sub(&l->holders, 1) == 1) free(l);
}

/* Lets go of the link of a connection that never began, if there is one. */
static void give_up_waiting(httpd *h, size_t fd) {
    httpd_link *l = atomic_exchange(&h->links[fd], NULL);
    if (l != NULL) release(l);
}

/* A connection begins in a thread of the library, after httpd_serve has returned: by then the one
 * who called it may have left. So the link waits at the descriptor with a hold of its own, which
 * the connection takes over when it begins, and gives back when it ends. */
static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    httpd *h = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const int fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *context = atomic_exchange(&h->links[fd], NULL);
    } else {
        release(*context);
    }
}

/* Paths are matched as they were sent: nothing hides behind %2e or %00. */
static size_t leave_escapes(void *user, struct MHD_Connection *connection, char *text) {
    (void)user;
    (void)connection;
    return strlen(text);
}

/* The library's own words would go to standard error. */
static void discard_words(void *user, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
static void discard_words(void *user, const char *format, va_list list) {
    (void)user;
    (void)format;
    (void)list;
}

clef_status httpd_open(httpd **out, service *s, const httpd_options *options, clef_error *err) {
    httpd *h = calloc(1, sizeof *h);
    if (h == NULL) return clef_fail_memory(err);
    h->s = s;
    const long most = sysconf(_SC_OPEN_MAX);
    h->n_links = most > 0 && most < MAX_DESCRIPTORS ? (size_t)most : MAX_DESCRIPTORS;
    h->links = calloc(h->n_links, sizeof *h->links);
    if (h->links == NULL) {
        free(h);
        return clef_fail_memory(err);
    }
    h->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, discard_words, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT,
        options->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)THREAD_STACK, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (h->daemon == NULL) {
        free(h->links);
        free(h);
        return clef_fail(err, CLEF_ERR_IO, "libmicrohttpd did not start");
    }
    *out = h;
    return CLEF_OK;
}

httpd_link *httpd_serve(httpd *h, int fd) {
    const struct sockaddr_un nobody = {.sun_family = AF_UNIX};
    httpd_link *l = (size_t)fd < h->n_links ? calloc(1, sizeof *l) : NULL;
    if (l == NULL) {
        close(fd);
        return NULL;
    }
    atomic_store(&l->holders, 2);
    give_up_waiting(h, (size_t)fd); /* it was closed without having begun, for want of memory */
    atomic_store(&h->links[fd], l);
    if (MHD_add_connection(h->daemon, fd, (const struct sockaddr *)&nobody, sizeof nobody) ==
        MHD_YES)
        return l;
    give_up_waiting(h, (size_t)fd);
    release(l);
    return NULL;
}

unsigned httpd_answered(const httpd_link *l) {
    return atomic_load(&l->answered);
}

void httpd_leave(httpd_link *l) {
    if (l == NULL) return;
    atomic_store(&l->left, true);
    release(l);
}

void httpd_close(httpd *h) {
    if (h == NULL) return;
    MHD_stop_daemon(h->daemon);
    for (size_t i = 0; i < h->n_links; i++) give_up_waiting(h, i);
    free(h->links);
    free(h);
}
