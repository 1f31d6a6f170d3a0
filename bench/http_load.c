/* http_load.c - how many requests a second a server answers, and how long one takes.
 *
 * Usage: http_load PORT BODY-FILE [CONNECTIONS [SECONDS]]
 *
 * Sends the same POST /v1/systemone again and again over keep-alive connections, one in flight on
 * each, from one thread. Prints the answers a second, the median and the 99th percentile of the
 * time between the first byte out and the last byte in, and how many answers were no 200. With the
 * answer cache on all but the first are kept answers; with another body of 422 it measures what the
 * server takes without the engine. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"

enum { MAX_CONNECTIONS = 1024, MAX_SAMPLES = 1 << 22, ROOM = 1 << 16 };

typedef struct {
    double sent;
    size_t n, want; /* bytes of the answer: here, and in all (0: not known yet) */
    char text[ROOM];
} client;

static void die(const char *what) {
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int connect_to(int port) {
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void ask(int fd, client *c, str request) {
    c->n = c->want = 0;
    c->sent = cpu_seconds();
    if (send(fd, request.p, request.n, MSG_NOSIGNAL) != (ssize_t)request.n) die("send");
}

/* Takes what has come; true when the answer is whole. */
static bool take(int fd, client *c) {
    const ssize_t n = recv(fd, c->text + c->n, ROOM - 1 - c->n, 0);
    if (n <= 0) die("the server closed a connection");
    c->n += (size_t)n;
    c->text[c->n] = '\0';
    if (c->want == 0) {
        const char *end = strstr(c->text, "\r\n\r\n"),
                   *length = strstr(c->text, "Content-Length: ");
        if (end == NULL || length == NULL) return false;
        c->want = (size_t)(end + 4 - c->text) + strtoul(length + 16, NULL, 10);
        if (c->want >= ROOM) die("an answer too large for this program");
    }
    return c->n >= c->want;
}

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 3) die("usage: http_load PORT BODY-FILE [CONNECTIONS [SECONDS]]");
    const int n = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 16;
    const int port = (int)strtol(argv[1], NULL, 10);
    const double seconds = argc > 4 ? strtod(argv[4], NULL) : 5;
    if (n < 1 || n > MAX_CONNECTIONS) die("wanted 1 to 1024 connections");
    buf body = {0}, request = {0};
    if (file_read(&body, argv[2], 1 << 24, NULL) != CLEF_OK) die(argv[2]);
    buf_printf(&request,
               "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
               body.n);
    buf_add(&request, body.p, body.n);
    struct pollfd *fds = calloc((size_t)n, sizeof *fds);
    client *clients = calloc((size_t)n, sizeof *clients);
    double *times = malloc(MAX_SAMPLES * sizeof *times);
    if (fds == NULL || clients == NULL || times == NULL || request.failed) die("memory");
    for (int i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = connect_to(port), .events = POLLIN};
        ask(fds[i].fd, &clients[i], (str){request.p, request.n});
    }
    size_t answered = 0, others = 0;
    const double begin = cpu_seconds();
    double now = begin;
    while (now - begin < seconds && answered < MAX_SAMPLES) {
        if (poll(fds, (nfds_t)n, 1000) < 0) die("poll");
        for (int i = 0; i < n && answered < MAX_SAMPLES; i++) {
            if (fds[i].revents == 0 || !take(fds[i].fd, &clients[i])) continue;
            now = cpu_seconds();
            times[answered++] = now - clients[i].sent;
            others += strncmp(clients[i].text, "HTTP/1.1 200 ", 13) != 0;
            ask(fds[i].fd, &clients[i], (str){request.p, request.n});
        }
        now = cpu_seconds();
    }
    qsort(times, answered, sizeof *times, by_time);
    if (answered > 0)
        printf("%d connections: %.0f answers/s, median %.3f ms, 99%% within %.3f ms, %zu of %zu no "
               "200\n",
               n, (double)answered / (now - begin), times[answered / 2] * 1e3,
               times[answered * 99 / 100] * 1e3, others, answered);
    for (int i = 0; i < n; i++) close(fds[i].fd);
    free(times);
    free(clients);
    free(fds);
    buf_free(&request);
    buf_free(&body);
    return answered == 0;
}
