/* edge.c - see edge.h. One thread moves the bytes of all connections.
 *
 *     client <-> [ up: wire.h checks -> ] [ <- down ] <-> socket pair <-> a thread of httpd.c
 *
 * A connection costs a thread, and the pair, only when its first whole head has come: whoever sends
 * a byte every few seconds holds a few kilobytes here and nothing else. A head goes on in one
 * piece.
 *
 * How a connection ends:
 *   - the other side of the pair closes (no keep-alive, an early answer): what it wrote is sent,
 * then the client gets our end of stream, and what it still sends is read and dropped for a moment,
 *     because closing over unread bytes would take the answer from it;
 *   - the client closes, or sends its end of stream, which looks the same from here: the pair is
 *     closed, which httpd.c notices, and the work for it stops;
 *   - a request is malformed or too slow: httpd.c sees the end of the stream and answers what came
 *     before; then the error is sent from here. */
#include "server/edge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "server/wire.h"

enum {
    UP_BYTES = 2 * WIRE_MAX_HEAD, /* a head has to fit */
    DOWN_BYTES = 32 << 10,
    BODY_BYTES_PER_S = 16 << 10,
    TICK_MS = 200,
    MAX_EVENTS = 64,
    MORE_TO_REFUSE = 64 /* connections beyond the limit that get an answer */
};
static const double LINGER_S = 2;
static const double LAST_CALL_S = 0.5; /* a head on its way is answered when the server stops */

typedef struct connection connection;

/* What epoll points to. */
typedef struct {
    int fd;
    uint32_t events; /* asked for */
    connection *c;   /* NULL: the listening socket or the wake-up */
} watched;

struct connection {
    watched client, inner;  /* inner.fd < 0: no pair */
    httpd_link *link;       /* of the pair, also when it is closed; NULL: there was none */
    unsigned n_heads;       /* passed */
    connection *next, **at; /* in the list of all */
    wire w;
    bool client_done; /* nothing more is read for requests */
    bool inner_done;  /* the pair's other side has closed */
    bool lingering, dead;
    bool heard;         /* something of an answer came: from the pair, or from here */
    bool up_broken;     /* httpd.c has stopped reading */
    bool unwatched;     /* the pair has hung up, which epoll would tell again and again */
    int refused;        /* status of an error to be sent from here, when the pair is done */
    const char *reason; /* of it */
    double since;       /* when the head, body, or waiting began */
    double write_since; /* when the client last took a byte that was waiting; 0: none waits */
    double linger_until;
    size_t n_body;         /* bytes since the head, for the rate */
    size_t n_up, n_passed; /* in `up`; of them allowed through */
    size_t down_at, n_down;
    char up[UP_BYTES], down[DOWN_BYTES];
};

struct edge {
    service *s;
    edge_options o;
    httpd *h;
    char address[80];
    bool loopback;
    watched listener, wake;
    int epoll;
    pthread_t thread;
    bool running;
    atomic_bool stopping, ending;
    atomic_uint n_connections;
    connection *connections;
};

/* ---- watching ------------------------------------------------------------------------------ */

static void watch(edge *g, watched *w, uint32_t events) {
    if (w->fd < 0 || w->events == events) return;
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(g->epoll, EPOLL_CTL_MOD, w->fd, &e);
    w->events = events;
}

static bool watch_new(edge *g, watched *w, int fd, connection *c, uint32_t events) {
    *w = (watched){fd, events, c};
    struct epoll_event e = {.events = events, .data.ptr = w};
    return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void watch_needs(edge *g, connection *c) {
    uint32_t client = 0, inner = 0;
    if (c->lingering || (!c->client_done && c->n_up < UP_BYTES)) client |= EPOLLIN;
    if (c->n_down > 0) client |= EPOLLOUT;
    if (c->inner.fd >= 0 && !c->unwatched) {
        if (c->n_down == 0) inner |= EPOLLIN;
        if (c->n_passed > 0 && !c->up_broken) inner |= EPOLLOUT;
        watch(g, &c->inner, inner);
    }
    watch(g, &c->client, client);
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void close_inner(connection *c) {
    if (c->inner.fd >= 0) close(c->inner.fd);
    c->inner.fd = -1;
    c->inner_done = true;
}

/* The client has left. The connection is freed when the events of this round are over. */
static void kill_connection(connection *c) {
    httpd_leave(c->link);
    c->link = NULL;
    close_inner(c);
    c->dead = true;
}

static void linger(connection *c) {
    if (c->lingering) return;
    c->lingering = true;
    c->client_done = true;
    c->linger_until = cpu_seconds() + LINGER_S;
    shutdown(c->client.fd, SHUT_WR);
}

/* Writes the error that this file answers with into `down`, which is empty. */
static void write_refusal(edge *g, connection *c) {
    call made = {.method = STR("-"), .path = STR("-"), .started = cpu_seconds(), .queue_s = -1};
    reply r = {0};
    buf text = {0};
    call_set_id(&made);
    reply_error(&r, c->refused, reply_error_type(c->refused), "%s: %s",
                c->refused == 503 ? "Too many connections" : "Not a request", c->reason);
    service_finish_headers(g->s, &made, &r);
    service_log(g->s, &made, &r);
    buf_printf(&text,
               "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\nConnection: close\r\n",
               r.status, reply_reason(r.status), r.body.n);
    buf_add(&text, r.headers.p, r.headers.n);
    buf_add_text(&text, "\r\n");
    buf_add(&text, r.body.p, r.body.n);
    if (!text.failed && text.n <= DOWN_BYTES) {
        memcpy(c->down, text.p, text.n);
        c->n_down = text.n;
        c->down_at = 0;
        c->heard = true;
    }
    buf_free(&text);
    reply_free(&r);
}

/* Whether the request that is refused for its body had its answer already, from its head. */
static bool is_answered(const connection *c) {
    return c->n_body > 0 && c->link != NULL && httpd_answered(c->link) >= c->n_heads;
}

static const char NO_ROOM[] = "there is no room for one more";

/* Nothing more of the client goes in; what went in is answered first. */
static void refuse(connection *c, int status, const char *reason) {
    c->client_done = true;
    c->refused = status;
    c->reason = reason;
    c->n_up = c->n_passed;
}

/* ---- bytes up ------------------------------------------------------------------------------ */

static bool open_inner(edge *g, connection *c) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return false;
    if (!watch_new(g, &c->inner, pair[0], c, EPOLLIN)) {
        close(pair[0]);
        close(pair[1]);
        c->inner.fd = -1;
        return false;
    }
    c->link = httpd_serve(g->h, pair[1]);
    if (c->link != NULL) return true;
    close_inner(c);
    return false;
}

static void send_up(edge *g, connection *c) {
    if (c->n_passed == 0) return;
    if (c->inner.fd < 0 && !c->inner_done && !open_inner(g, c)) {
        c->n_passed = c->n_up = 0;
        refuse(c, 503, NO_ROOM);
        c->inner_done = true;
        return;
    }
    while (c->n_passed > 0 && !c->up_broken && c->inner.fd >= 0) {
        const ssize_t n = send(c->inner.fd, c->up, c->n_passed, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n < 0) {
            c->up_broken = true;
            break;
        }
        memmove(c->up, c->up + n, c->n_up - (size_t)n);
        c->n_up -= (size_t)n;
        c->n_passed -= (size_t)n;
    }
    if (c->up_broken || c->inner.fd < 0) { /* it has answered already, or will no more */
        c->n_up -= c->n_passed;
        memmove(c->up, c->up + c->n_passed, c->n_up);
        c->n_passed = 0;
    }
}

/* Judges the bytes from `at` on. */
static void check_up(connection *c, size_t at) {
    while (at < c->n_up && !c->client_done) {
        size_t used = 0;
        const bool was_in_body = c->n_body > 0;
        switch (wire_feed(&c->w, c->up + at, c->n_up - at, &used)) {
        case WIRE_BAD:
            refuse(c, c->w.status, c->w.reason);
            return;
        case WIRE_HEAD:
            c->n_heads++;
            c->n_body = 1;
            at += used;
            c->n_passed = at;
            break;
        case WIRE_END: /* a head without a body ends with it */
            if (c->n_body == 0) c->n_heads++;
            c->n_body = 0;
            c->since = cpu_seconds();
            at += used;
            c->n_passed = at;
            break;
        case WIRE_MORE:
            at += used;
            if (was_in_body || c->n_body > 0) {
                c->n_body += used;
                c->n_passed = at;
            }
            break;
        }
    }
}

static void read_client(edge *g, connection *c) {
    for (;;) {
        if (c->client_done || c->n_up == UP_BYTES) return;
        const ssize_t n = recv(c->client.fd, c->up + c->n_up, UP_BYTES - c->n_up, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            kill_connection(c);
            return;
        }
        if (!wire_is_inside(&c->w)) c->since = cpu_seconds();
        const size_t at = c->n_up;
        c->n_up += (size_t)n;
        check_up(c, at);
        send_up(g, c);
        if ((size_t)n < UP_BYTES / 2) return; /* likely all there is */
    }
}

/* ---- bytes down ---------------------------------------------------------------------------- */

static void send_down(connection *c) {
    while (c->n_down > 0) {
        const ssize_t n = send(c->client.fd, c->down + c->down_at, c->n_down, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (c->write_since == 0) c->write_since = cpu_seconds();
            return;
        }
        if (n < 0) {
            kill_connection(c);
            return;
        }
        c->down_at += (size_t)n;
        c->n_down -= (size_t)n;
        c->write_since = c->n_down > 0 ? cpu_seconds() : 0;
    }
    c->down_at = 0;
}

static void read_inner(connection *c) {
    while (c->n_down == 0 && c->inner.fd >= 0 && !c->dead) {
        const ssize_t n = recv(c->inner.fd, c->down, DOWN_BYTES, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            close_inner(c);
            return;
        }
        c->n_down = (size_t)n;
        c->down_at = 0;
        c->heard = true;
        send_down(c);
        if ((size_t)n < DOWN_BYTES && !c->unwatched) return;
    }
}

/* What follows from where things stand, after any event. */
static void settle(edge *g, connection *c) {
    if (c->dead) return;
    send_up(g, c);
    if (c->refused != 0 && c->n_passed == 0 && c->inner.fd >= 0) shutdown(c->inner.fd, SHUT_WR);
    /* Without memory for its thread the pair closes unheard; its client is told all the same. */
    const bool unheard = c->inner_done && !c->heard && c->n_heads > 0 && !c->lingering;
    if (unheard && c->refused == 0) refuse(c, 503, NO_ROOM);
    if (c->inner.fd < 0 && c->n_down == 0 && c->refused != 0) {
        if (!is_answered(c)) write_refusal(g, c);
        c->refused = 0;
        send_down(c);
        c->inner_done = true;
    }
    if (!c->dead && c->inner_done && c->n_down == 0) linger(c);
    if (!c->dead) watch_needs(g, c);
}

/* ---- connections --------------------------------------------------------------------------- */

static void drop_bytes(connection *c) {
    for (int rounds = 0; rounds < 64; rounds++) {
        const ssize_t n = recv(c->client.fd, c->up, UP_BYTES, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            c->dead = true;
            return;
        }
    }
}

static void on_event(edge *g, watched *w, uint32_t events) {
    connection *c = w->c;
    if (c->dead || w->fd < 0) return;
    if (w == &c->client) {
        if (c->lingering)
            drop_bytes(c);
        else if (events & EPOLLIN)
            read_client(g, c);
        if (!c->dead && events & (EPOLLHUP | EPOLLERR)) kill_connection(c);
        if (!c->dead && events & EPOLLOUT) {
            send_down(c);
            read_inner(c);
        }
    } else {
        if (events & (EPOLLHUP | EPOLLERR) && !c->unwatched) {
            epoll_ctl(g->epoll, EPOLL_CTL_DEL, w->fd, NULL);
            c->unwatched = true;
        }
        read_inner(c);
    }
    settle(g, c);
}

/* Beyond the limit a few more are taken, to be told so. */
static void add_connection(edge *g, int fd) {
    const unsigned n = atomic_load(&g->n_connections);
    const bool beyond = n >= g->o.max_connections;
    connection *c = n < g->o.max_connections + MORE_TO_REFUSE ? calloc(1, sizeof *c) : NULL;
    if (beyond || c == NULL) atomic_fetch_add(&g->s->counts.connections_refused, 1);
    if (c == NULL) {
        close(fd);
        return;
    }
    c->inner.fd = -1;
    c->w.max_body = g->s->rules.max_body;
    c->since = cpu_seconds();
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!watch_new(g, &c->client, fd, c, EPOLLIN)) {
        free(c);
        close(fd);
        return;
    }
    c->next = g->connections;
    c->at = &g->connections;
    if (c->next != NULL) c->next->at = &c->next;
    g->connections = c;
    atomic_fetch_add(&g->n_connections, 1);
    atomic_fetch_add(&g->s->counts.connections, 1);
    atomic_fetch_add(&g->s->counts.connections_opened, 1);
    if (!beyond) return;
    refuse(c, 503, "the limit is reached");
    settle(g, c);
}

static void free_connection(edge *g, connection *c) {
    kill_connection(c);
    close(c->client.fd);
    *c->at = c->next;
    if (c->next != NULL) c->next->at = c->at;
    free(c);
    atomic_fetch_sub(&g->n_connections, 1);
    atomic_fetch_sub(&g->s->counts.connections, 1);
}

static void accept_all(edge *g) {
    for (int i = 0; i < MAX_EVENTS; i++) {
        const int fd = accept(g->listener.fd, NULL, NULL);
        /* Who cannot be accepted for want of a descriptor would be told of again and again: the
         * next tick looks again. */
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            watch(g, &g->listener, 0);
        if (fd < 0) return;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        add_connection(g, fd);
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

/* Nothing of a request is here and nothing of an answer is under way. */
static bool is_idle(const connection *c) {
    return c->n_up == 0 && c->n_down == 0 && !wire_is_inside(&c->w);
}

typedef enum { IN_TIME, OVER, TOO_SLOW } verdict;

static verdict judge(edge *g, const connection *c, double now) {
    const double body_s = (double)c->n_body / BODY_BYTES_PER_S;
    const bool blocked = c->n_up == UP_BYTES; /* by the routes, not by the client */
    const bool inside = wire_is_inside(&c->w);
    const double passed = now - c->since;
    const bool silent = !inside && c->inner.fd < 0 && !c->inner_done && passed > g->o.head_s;
    const bool last_call = atomic_load(&g->stopping) && is_idle(c) && passed > LAST_CALL_S &&
                           atomic_load(&g->s->counts.in_flight) == 0;
    if (silent || last_call) return OVER;
    return inside && !blocked && passed > g->o.head_s + body_s ? TOO_SLOW : IN_TIME;
}

/* A process that was held up comes to the clock before it has come to every socket. So nobody is
 * judged before what waits there was read. */
static void check_time(edge *g, connection *c, double now) {
    if (c->lingering) {
        if (now > c->linger_until) c->dead = true;
        return;
    }
    if (c->write_since > 0 && now - c->write_since > g->o.write_s) {
        kill_connection(c);
        return;
    }
    if (c->client_done) return;
    if (judge(g, c, now) != IN_TIME) read_client(g, c);
    if (c->dead) return;
    const verdict v = c->client_done ? IN_TIME : judge(g, c, now);
    if (v == OVER)
        kill_connection(c);
    else if (v == TOO_SLOW)
        refuse(c, 408, c->n_body > 0 ? "its body came too slowly" : "its head came too slowly");
    settle(g, c);
}

/* Deadlines, and the connections that are over. */
static void tidy(edge *g, bool all_times) {
    const double now = cpu_seconds();
    for (connection *c = g->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (all_times && !c->dead) check_time(g, c, now);
        if (c->dead) free_connection(g, c);
    }
}

static void *run(void *user) {
    edge *g = user;
    struct epoll_event events[MAX_EVENTS];
    double last_tick = cpu_seconds();
    while (!atomic_load(&g->ending)) {
        const int n = epoll_wait(g->epoll, events, MAX_EVENTS, TICK_MS);
        bool any_dead = false;
        for (int i = 0; i < n; i++) {
            watched *w = events[i].data.ptr;
            if (w == &g->listener) {
                accept_all(g);
            } else if (w == &g->wake) {
                uint64_t count;
                const ssize_t got = read(w->fd, &count, sizeof count);
                (void)got;
            } else {
                on_event(g, w, events[i].events);
                any_dead = any_dead || w->c->dead;
            }
        }
        if (atomic_load(&g->stopping) && g->listener.fd >= 0) {
            close(g->listener.fd);
            g->listener.fd = -1;
        }
        const double now = cpu_seconds();
        const bool tick = now - last_tick >= TICK_MS / 1e3;
        if (tick) last_tick = now;
        if (tick) watch(g, &g->listener, EPOLLIN);
        if (tick || any_dead) tidy(g, tick);
    }
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void name_address(edge *g) {
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char text[INET6_ADDRSTRLEN] = "";
    getsockname(g->listener.fd, (struct sockaddr *)&at, &n);
    if (at.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at;
        inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
        g->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
        snprintf(g->address, sizeof g->address, "[%s]:%u", text, ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&at;
        inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
        g->loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
        snprintf(g->address, sizeof g->address, "%s:%u", text, ntohs(four->sin_port));
    }
}

static clef_status listen_on(edge *g, clef_error *err) {
    enum { BACKLOG = 1024 };
    char port[8];
    snprintf(port, sizeof port, "%u", g->o.port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int unknown = getaddrinfo(g->o.host, port, &hints, &found);
    if (unknown != 0)
        return clef_fail(err, CLEF_ERR_INPUT, "--host %s: %s", g->o.host, gai_strerror(unknown));
    int fd = -1, why = 0;
    for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        const int on = 1;
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) break;
        why = errno;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0)
        return clef_fail(err, CLEF_ERR_IO, "cannot listen on %s, port %u: %s", g->o.host, g->o.port,
                         strerror(why));
    g->listener.fd = fd;
    name_address(g);
    return CLEF_OK;
}

clef_status edge_open(edge **out, service *s, const edge_options *options, clef_error *err) {
    edge *g = calloc(1, sizeof *g);
    if (g == NULL) return clef_fail_memory(err);
    g->s = s;
    g->o = *options;
    g->listener.fd = g->wake.fd = g->epoll = -1;
    const clef_status status = listen_on(g, err);
    if (status != CLEF_OK) {
        edge_close(g);
        return status;
    }
    *out = g;
    return CLEF_OK;
}

clef_status edge_start(edge *g, httpd *h, clef_error *err) {
    g->h = h;
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (g->epoll < 0 || wake < 0 || !watch_new(g, &g->wake, wake, NULL, EPOLLIN) ||
        !watch_new(g, &g->listener, g->listener.fd, NULL, EPOLLIN))
        return clef_fail(err, CLEF_ERR_IO, "cannot watch sockets: %s", strerror(errno));
    const int failed = pthread_create(&g->thread, NULL, run, g);
    if (failed != 0)
        return clef_fail(err, CLEF_ERR_IO, "cannot start a thread: %s", strerror(failed));
    g->running = true;
    return CLEF_OK;
}

const char *edge_address(const edge *g) {
    return g->address;
}

bool edge_is_loopback(const edge *g) {
    return g->loopback;
}

static void wake_up(edge *g) {
    const uint64_t one = 1;
    const ssize_t n = write(g->wake.fd, &one, sizeof one);
    (void)n;
}

void edge_stop(edge *g) {
    atomic_store(&g->stopping, true);
    wake_up(g);
}

bool edge_is_empty(edge *g) {
    return atomic_load(&g->n_connections) == 0;
}

void edge_close(edge *g) {
    if (g == NULL) return;
    if (g->running) {
        atomic_store(&g->ending, true);
        wake_up(g);
        pthread_join(g->thread, NULL);
    }
    while (g->connections != NULL) free_connection(g, g->connections);
    if (g->listener.fd >= 0) close(g->listener.fd);
    if (g->wake.fd >= 0) close(g->wake.fd);
    if (g->epoll >= 0) close(g->epoll);
    free(g);
}
