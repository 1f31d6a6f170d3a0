/* server.h - clef serve as a process of a test's own, and sockets to talk to it by hand. */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "clef.h"
#include "tests/folder.h"
#include "text/json.h"
#include "text/pyjson.h"

#define PROGRAM (BUILD_DIR "clef")
#define TOY_TEXT TESTDATA "toy-r2" /* to be part of a longer text */
#define TOY (TOY_TEXT)
#define REQUEST                                                                           \
    "{\"model\":\"clef-flash\",\"state\":\"The box was open.\",\"questions\":{\"open\":{" \
    "\"type\":\"noul\"},\"who\":{\"type\":\"choice\",\"criteria\":{\"b\":\"Billing\","    \
    "\"a\":null}},\"when\":{\"type\":\"score\",\"criteria\":[\"later\",{\"now\":1}]}}}"

enum { MAX_WORDS = 40, PLENTY_MS = 60000 };

static folder dir;

#define POST_HEAD "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\n"

/* ---- a server ------------------------------------------------------------------------------ */

typedef struct {
    pid_t pid;
    uint16_t port;
    char log[64]; /* name in dir */
} running;

static inline void nap(unsigned ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static inline buf read_log(const running *v) {
    buf out = {0};
    file_read(&out, folder_path(&dir, v->log), 1 << 28, NULL);
    buf_add(&out, "", 0);
    return out;
}

/* Waits for `words` in the log. */
static inline void await_log(const running *v, const char *words) {
    for (int i = 0; i < PLENTY_MS / 10; i++, nap(10)) {
        buf log = read_log(v);
        const bool there = strstr(log.p, words) != NULL;
        buf_free(&log);
        if (there) return;
    }
    fail_msg("the log of the server never said: %s", words);
}

/* Starts the program with the words given, up to NULL. Its log is a file. */
static inline running start_process(const char *const *words) {
    static int n_started;
    running v = {0};
    snprintf(v.log, sizeof v.log, "log%d", n_started++);
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(&dir, v.log));
    const char *argv[MAX_WORDS] = {PROGRAM, "serve", "--port", "0", "--log", path};
    int n = 6;
    for (; *words != NULL; words++) {
        assert_true(n + 1 < MAX_WORDS);
        argv[n++] = *words;
    }
    v.pid = fork();
    assert_true(v.pid >= 0);
    if (v.pid == 0) {
        /* A test that fails leaves its server behind. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *copy[MAX_WORDS] = {0};
        for (int i = 0; i < n; i++) copy[i] = strdup(argv[i]);
        execv(copy[0], copy);
        _exit(127);
    }
    return v;
}

static inline running start(const char *const *words) {
    running v = start_process(words);
    await_log(&v, "ready after"); /* which another thread says: either may come first */
    await_log(&v, "listens on http://");
    buf log = read_log(&v);
    const char *at = strstr(log.p, "listens on http://");
    assert_non_null(at);
    at += strlen("listens on http://");
    at += strcspn(at, "\"\n"); /* of a line of JSON or of text */
    while (at[-1] >= '0' && at[-1] <= '9') at--;
    v.port = (uint16_t)strtoul(at, NULL, 10);
    buf_free(&log);
    return v;
}

#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static inline int wait_for_end(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void stop(const running *v) {
    kill(v->pid, SIGTERM);
    assert_int_equal(wait_for_end(v->pid), 0);
}

/* The server that tests share which do not change it. */
static running shared;

static inline int begin_all(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    dir = folder_new();
    shared = START("--model", TOY);
    return 0;
}

static inline int end_all(void **state) {
    (void)state;
    stop(&shared);
    folder_remove(dir.path);
    return 0;
}

/* ---- talking ------------------------------------------------------------------------------- */

static inline int connect_to(uint16_t port) {
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends all, or as much as the other side takes before it closes. */
static inline void send_all(int fd, str bytes) {
    for (size_t at = 0; at < bytes.n;) {
        const ssize_t n = send(fd, bytes.p + at, bytes.n - at, MSG_NOSIGNAL);
        if (n <= 0) return;
        at += (size_t)n;
    }
}

/* What comes until the other side closes (*closed) or nothing came for `ms`. */
static inline buf receive(int fd, int ms, bool *closed) {
    buf out = {0};
    char block[65536];
    *closed = false;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, ms) != 1) break;
        const ssize_t n = recv(fd, block, sizeof block, 0);
        if (n <= 0) {
            *closed = true;
            break;
        }
        buf_add(&out, block, (size_t)n);
    }
    buf_add(&out, "", 0);
    return out;
}

typedef struct {
    int status;       /* of the first answer */
    int n;            /* answers */
    bool closed;      /* by the server */
    buf text;         /* everything */
    const char *body; /* of the last answer; in text */
} answer;

/* A body cannot hold the text of a status line here. */
static inline answer read_answer(buf text, bool closed) {
    answer a = {.closed = closed, .text = text};
    for (const char *at = text.p; (at = strstr(at, "HTTP/1.1 ")) != NULL; at++)
        if (at == text.p || at[-1] == '\n' || at[-1] == '}' || at[-1] == ']') {
            const int status = (int)strtol(at + 9, NULL, 10);
            if (a.n++ == 0) a.status = status;
            const char *end = strstr(at, "\r\n\r\n");
            a.body = end == NULL ? "" : end + 4;
        }
    if (a.body == NULL) a.body = "";
    return a;
}

/* What comes until the server closes, and closes too. */
static inline answer finish(int fd) {
    bool closed;
    const buf text = receive(fd, PLENTY_MS, &closed);
    close(fd);
    return read_answer(text, closed);
}

static inline answer talk(uint16_t port, str bytes, int quiet_ms) {
    const int fd = connect_to(port);
    assert_true(fd >= 0);
    send_all(fd, bytes);
    bool closed;
    buf text = receive(fd, quiet_ms, &closed);
    close(fd);
    return read_answer(text, closed);
}

/* A request with "Connection: close"; `headers` are whole lines. */
static inline answer ask_with(uint16_t port, const char *line, const char *headers, str body) {
    buf bytes = {0};
    buf_printf(&bytes, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", line, headers);
    if (body.p != NULL) buf_printf(&bytes, "Content-Length: %zu\r\n", body.n);
    buf_add_text(&bytes, "\r\n");
    buf_add(&bytes, body.p, body.n);
    assert_false(bytes.failed);
    answer a = talk(port, (str){bytes.p, bytes.n}, PLENTY_MS);
    buf_free(&bytes);
    return a;
}

static inline answer post(uint16_t port, const char *body) {
    return ask_with(port, "POST /v1/systemone", "", str_of(body));
}

static inline answer get(uint16_t port, const char *path) {
    char line[600];
    snprintf(line, sizeof line, "GET %s", path);
    return ask_with(port, line, "", (str){NULL, 0});
}

static inline void done(answer *a) {
    buf_free(&a->text);
}

static inline void expect(answer a, int status, const char *words) {
    if (a.status != status || a.n != 1 || (words != NULL && strstr(a.text.p, words) == NULL))
        fail_msg("wanted %d with \"%s\", got %d answers: %.2000s", status,
                 words == NULL ? "" : words, a.n, a.text.p);
    done(&a);
}

#endif
