/* server_life_test.c - clef serve under load and over time: full queues, clients that leave or
 * dawdle, signals, logs, configurations.
 *
 * The toy's longest requests, computed in small steps, take long enough to fill a queue, to leave,
 * and to stop a server under. */
#include "tests/rest.h"
#include "tests/server.h"

/* gcc says it by macros, clang by features. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* ---- load ---------------------------------------------------------------------------------- */

/* A request that takes the toy a while: unique by `i`, with a state of about `tokens` tokens. */
static buf long_request(int i, int tokens) {
    buf body = {0}, bytes = {0};
    buf_printf(&body, "{\"state\":\"%d ", i);
    for (int k = 0; k < tokens; k++) buf_add_text(&body, "7");
    buf_add_text(&body, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    buf_printf(&bytes, POST_HEAD "Connection: close\r\nContent-Length: %zu\r\n\r\n", body.n);
    buf_add(&bytes, body.p, body.n);
    buf_free(&body);
    return bytes;
}

static double metric(uint16_t port, const char *name) {
    answer a = get(port, "/metrics");
    char line[100];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(a.text.p, line);
    const double value = at == NULL ? 0 : strtod(at + strlen(line), NULL);
    done(&a);
    return value;
}

/* Waits until a metric has a value. */
static void await_metric(uint16_t port, const char *name, double value) {
    for (int i = 0; i < PLENTY_MS / 20; i++, nap(20))
        if (metric(port, name) == value) return;
    fail_msg("%s never was %g, but %g", name, value, metric(port, name));
}

static void a_full_queue_is_429_and_counted(void **state) {
    (void)state;
    enum { WAITING = 2, REFUSED = 20 };
    running v = START("--model", TOY, "--queue", "2", "--chunk", "1", "--batch-tokens", "1");
    int fds[1 + WAITING];
    for (int i = 0; i < 1 + WAITING; i++) {
        buf bytes = long_request(i, i == 0 ? 15000 : 10);
        fds[i] = connect_to(v.port);
        assert_true(fds[i] >= 0);
        send_all(fds[i], (str){bytes.p, bytes.n});
        buf_free(&bytes);
        await_metric(v.port, i == 0 ? "clef_running" : "clef_queue_depth", i == 0 ? 1 : i);
    }
    for (int i = 0; i < REFUSED; i++) {
        answer a = post(v.port, REQUEST);
        assert_non_null(strstr(a.text.p, "\r\nRetry-After: 1\r\nretry-after-ms: 1000\r\n"));
        expect(a, 429, "\"error_type\": \"rate_limit_error\"");
    }
    /* A wrong request is told so, full queue or not. */
    expect(post(v.port, "{}"), 422, "Field required");
    close(fds[0]); /* the first leaves, and the others move on */
    for (int i = 1; i < 1 + WAITING; i++) expect(finish(fds[i]), 200, "\"answers\"");
    assert_int_equal((int)metric(v.port, "clef_engine_refused_total"), REFUSED);
    assert_int_equal((int)metric(v.port, "clef_requests_total{status=\"429\"}"), REFUSED);
    stop(&v);
}

static void equal_requests_in_flight_are_computed_once(void **state) {
    (void)state;
    enum { MANY = 8 };
    running v = START("--model", TOY, "--chunk", "64");
    int fds[MANY];
    buf bytes = long_request(0, 4000);
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_to(v.port);
        send_all(fds[i], (str){bytes.p, bytes.n});
    }
    buf first = {0};
    for (int i = 0; i < MANY; i++) {
        answer a = finish(fds[i]);
        assert_int_equal(a.status, 200);
        if (i == 0) buf_add_text(&first, a.body);
        assert_string_equal(a.body, first.p);
        done(&a);
    }
    assert_int_equal((int)metric(v.port, "clef_answer_cache_misses_total"), 1);
    assert_int_equal((int)metric(v.port, "clef_engine_answered_total"), 1);
    buf_free(&first);
    buf_free(&bytes);
    stop(&v);
}

static void a_client_that_leaves_takes_its_request_along(void **state) {
    (void)state;
    running v = START("--model", TOY, "--chunk", "16");
    buf bytes = long_request(0, 15000);
    const int fd = connect_to(v.port);
    send_all(fd, (str){bytes.p, bytes.n});
    await_metric(v.port, "clef_running", 1);
    close(fd);
    await_metric(v.port, "clef_running", 0);
    assert_int_equal((int)metric(v.port, "clef_engine_cancelled_total"), 1);
    await_metric(v.port, "clef_requests_total{status=\"499\"}", 1);
    assert_int_equal((int)metric(v.port, "clef_engine_answered_total"), 0);
    buf_free(&bytes);
    stop(&v);
}

/* They leave while their connections begin, in a thread of libmicrohttpd. */
static void clients_that_leave_at_once_do_no_harm(void **state) {
    (void)state;
    enum { CLIENTS = 500 };
    running v = START("--model", TOY);
    const struct linger at_once = {.l_onoff = 1};
    for (int i = 0; i < CLIENTS; i++) {
        const int fd = connect_to(v.port);
        assert_true(fd >= 0);
        send_all(fd, STR(POST_HEAD "Content-Length: 9\r\n\r\n{"));
        if (i % 2 == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fd);
    }
    await_metric(v.port, "clef_connections", 1);
    await_metric(v.port, "clef_in_flight", 1);
    expect(post(v.port, REQUEST), 200, NULL);
    stop(&v);
}

static void a_request_past_its_deadline_is_503(void **state) {
    (void)state;
    running v = START("--model", TOY, "--chunk", "1", "--deadline", "1");
    buf bytes = long_request(0, 15000);
    expect(talk(v.port, (str){bytes.p, bytes.n}, PLENTY_MS), 503, "No answer within 1 seconds");
    buf_free(&bytes);
    stop(&v);
}

enum { SLOW = 200 };

/* Each sends a part of a head, or of a body. */
static void connect_slow(uint16_t port, int fds[SLOW]) {
    for (int i = 0; i < SLOW; i++) {
        fds[i] = connect_to(port);
        assert_true(fds[i] >= 0);
        send_all(fds[i], i % 2 == 0 ? STR("P") : STR(POST_HEAD "Content-Length: 9\r\n\r\n{"));
    }
}

/* How long the request takes beside them is measured by bench/soak.py. */
static void two_hundred_slow_clients_hold_nobody_up(void **state) {
    (void)state;
    running v = START("--model", TOY, "--head-seconds", "600");
    int fds[SLOW];
    connect_slow(v.port, fds);
    expect(post(v.port, REQUEST), 200, "\"answers\"");
    await_metric(v.port, "clef_connections", SLOW + 1); /* they are all there */
    for (int i = 0; i < SLOW; i++) close(fds[i]);
    await_metric(v.port, "clef_connections", 1);
    stop(&v);
}

static void a_client_that_is_too_slow_is_408(void **state) {
    (void)state;
    running v = START("--model", TOY, "--head-seconds", "1");
    int fds[SLOW];
    connect_slow(v.port, fds);
    for (int i = 0; i < SLOW; i++) {
        answer a = finish(fds[i]);
        assert_true(a.closed);
        expect(a, 408, "request_timeout");
    }
    await_metric(v.port, "clef_connections", 1);
    stop(&v);
}

/* More clients than the server looks at in one turn, whose requests come while it stands still. */
static void a_server_that_was_held_up_does_not_blame_its_clients(void **state) {
    (void)state;
    enum { CLIENTS = 100, KINDS = 3, HEAD_SECONDS = 8 };
    running v = START("--model", TOY, "--head-seconds", "8");
    const str request = STR(POST_HEAD "Connection: close\r\nContent-Length: 2\r\n\r\n{}");
    const size_t before[KINDS] = {0, 20, request.n - 1}; /* nothing, part of a head, of a body */
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_to(v.port);
        assert_true(fds[i] >= 0);
        send_all(fds[i], (str){request.p, before[i % KINDS]});
    }
    await_metric(v.port, "clef_connections", CLIENTS + 1);
    kill(v.pid, SIGSTOP);
    for (int i = 0; i < CLIENTS; i++)
        send_all(fds[i], (str){request.p + before[i % KINDS], request.n - before[i % KINDS]});
    nap((HEAD_SECONDS + 1) * 1000);
    kill(v.pid, SIGCONT);
    for (int i = 0; i < CLIENTS; i++) expect(finish(fds[i]), 422, "Field required");
    stop(&v);
}

static void connections_beyond_the_limit_are_503(void **state) {
    (void)state;
    running v = START("--model", TOY, "--max-connections", "4");
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to(v.port);
        send_all(fds[i], STR("G"));
    }
    answer a = post(v.port, REQUEST); /* what it sends does not cost it the answer */
    assert_non_null(strstr(a.text.p, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(a.text.p, "\r\nx-typesafe-request-id: req_"));
    assert_true(a.closed);
    expect(a, 503, "overloaded_error");
    for (int i = 0; i < 4; i++) close(fds[i]);
    for (a = get(v.port, "/health"); a.status == 503; a = get(v.port, "/health")) {
        done(&a); /* it has not seen all of them leave */
        nap(20);
    }
    expect(a, 200, NULL);
    stop(&v);
}

/* What /proc/PID/status says of memory, in bytes. */
static uint64_t memory_of(const running *v, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)v->pid);
    buf text = {0};
    assert_int_equal(file_read(&text, path, 1 << 16, NULL), CLEF_OK);
    buf_add(&text, "", 0);
    const char *at = strstr(text.p, name);
    assert_non_null(at);
    const uint64_t bytes = strtoull(at + strlen(name), NULL, 10) << 10;
    buf_free(&text);
    return bytes;
}

/* Tells the processor time that the server has spent. */
static clockid_t clock_of(const running *v) {
    clockid_t clock = 0;
    assert_int_equal(clock_getcpuclockid(v->pid, &clock), 0);
    return clock;
}

/* Limits a running server; `limit` is an option of prlimit. */
static void limit_server(const running *v, const char *limit) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)v->pid);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execlp("prlimit", "prlimit", "--pid", pid, limit, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(wait_for_end(child), 0);
}

/* The clients that cannot be accepted wait in the system's queue, of which epoll tells. */
static void without_descriptors_the_server_waits_and_does_not_spin(void **state) {
    (void)state;
    enum { CLIENTS = 40 };
    running v = START("--model", TOY);
    limit_server(&v, "--nofile=24:24");
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) fds[i] = connect_to(v.port);
    nap(300);
    const double before = rest_spent(clock_of(&v));
    nap(2000);
    assert_true(rest_spent(clock_of(&v)) - before < 0.1);
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    expect(get(v.port, "/health"), 200, NULL);
    stop(&v);
}

static void an_idle_server_takes_no_processor_time(void **state) {
    (void)state;
    running v = START("--model", TOY, "--threads", "3");
    const int fd = connect_to(v.port); /* and keeps quiet */
    expect(post(v.port, REQUEST), 200, NULL);
    assert_true(rest_comes(clock_of(&v)));
    close(fd);
    stop(&v);
}

/* The address space has room for what a connection needs but not for a thread's stack. */
static void without_a_thread_a_request_is_503(void **state) {
    (void)state;
#if SANITIZED
    skip(); /* a sanitizer ends the server that gets no memory */
#endif
    running v = START("--model", TOY);
    char limit[64];
    snprintf(limit, sizeof limit,
             "--as=%llu:", (unsigned long long)memory_of(&v, "VmSize:") + (300 << 10));
    limit_server(&v, limit);
    for (int i = 0; i < 3; i++) {
        answer a = post(v.port, REQUEST);
        assert_non_null(strstr(a.text.p, "\r\nRetry-After: 1\r\n"));
        expect(a, 503, "there is no room for one more");
    }
    limit_server(&v, "--as=unlimited:");
    expect(post(v.port, REQUEST), 200, "\"answers\"");
    assert_int_equal((int)metric(v.port, "clef_requests_total{status=\"503\"}"), 3);
    stop(&v);
}

static void a_wrong_key_file_leaves_the_keys_and_the_log_is_opened_again(void **state) {
    (void)state;
    folder_write(&dir, "keys-good", STR("alpha\n"));
    char path[1024], log[1024], moved[1024];
    snprintf(path, sizeof path, "%s", folder_path(&dir, "keys-good"));
    running v = START("--model", TOY, "--api-key-file", path);
    snprintf(log, sizeof log, "%s", folder_path(&dir, v.log));
    snprintf(moved, sizeof moved, "%s", folder_path(&dir, "moved"));
    folder_write(&dir, "keys-good", STR("al pha\n"));
    assert_int_equal(rename(log, moved), 0);
    kill(v.pid, SIGHUP);
    for (int i = 0; i < PLENTY_MS / 10 && access(log, F_OK) != 0; i++) nap(10);
    await_log(&v, "the keys stay as they were: ");
    expect(ask_with(v.port, "POST /v1/systemone", "X-API-Key: alpha\r\n", STR(REQUEST)), 200, NULL);
    folder_write(&dir, "keys-good", STR("beta\n"));
    kill(v.pid, SIGHUP);
    await_log(&v, "keys read again");
    expect(ask_with(v.port, "POST /v1/systemone", "X-API-Key: alpha\r\n", STR(REQUEST)), 401, NULL);
    stop(&v);
}

typedef struct {
    uint16_t port;
    int first, n;
    char fault[600]; /* empty: none */
} client;

/* Asks and checks: a question's id is in its answer, a wrong body is refused. */
static void *be_client(void *user) {
    client *c = user;
    for (int i = 0; i < c->n; i++) {
        char body[160], want[40];
        snprintf(body, sizeof body, "{\"state\":\"s\",\"questions\":{\"q%d\":{\"type\":\"%s\"}}}",
                 c->first + i, i % 3 == 0 ? "x" : "noul");
        snprintf(want, sizeof want, i % 3 == 0 ? "\"q%d\", \"type\"]" : "\"q%d\": {\"type\"",
                 c->first + i);
        buf bytes = {0};
        buf_printf(&bytes, POST_HEAD "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
        const int fd = connect_to(c->port);
        if (fd < 0) {
            snprintf(c->fault, sizeof c->fault, "no connection");
            buf_free(&bytes);
            return NULL;
        }
        send_all(fd, (str){bytes.p, bytes.n});
        answer a = finish(fd);
        if (a.status != (i % 3 == 0 ? 422 : 200) || a.n != 1 || strstr(a.body, want) == NULL)
            snprintf(c->fault, sizeof c->fault, "%d answers%s to %s: %.400s", a.n,
                     a.closed ? "" : " in a minute", body, a.text.p);
        done(&a);
        buf_free(&bytes);
    }
    return NULL;
}

/* A number of two bytes becomes a node of 64. */
static void bodies_of_many_values_are_held_to_a_ceiling(void **state) {
    (void)state;
    enum { CLIENTS = 4, VALUES = 10 << 20 };
    const uint64_t most = 900u << 20;
    running v = START("--model", TOY);
    buf bytes = {0};
    buf_printf(&bytes, POST_HEAD "Connection: close\r\nContent-Length: %d\r\n\r\n[0",
               VALUES * 2 + 3);
    for (int i = 0; i < VALUES; i++) buf_add_text(&bytes, ",0");
    buf_add_char(&bytes, ']');
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_to(v.port);
        send_all(fds[i], (str){bytes.p, bytes.n});
    }
    for (int i = 0; i < CLIENTS; i++) {
        answer a = finish(fds[i]);
        const bool beside = a.status == 503; /* another's values are there */
        expect(a, beside ? 503 : 422, beside ? "overloaded_error" : "too_complex");
    }
    assert_in_range(memory_of(&v, "VmHWM:"), 0, most);
    buf_free(&bytes);
    stop(&v);
}

static void a_hundred_clients_get_their_own_answers(void **state) {
    (void)state;
    enum { CLIENTS = 100, EACH = 6 };
    running v = START("--model", TOY, "--queue", "200");
    pthread_t threads[CLIENTS];
    client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){v.port, i * EACH, EACH, ""};
        assert_int_equal(pthread_create(&threads[i], NULL, be_client, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fault[0] != '\0') fail_msg("client %d: %s", i, clients[i].fault);
    await_metric(v.port, "clef_connections", 1);
    stop(&v);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void sigterm_answers_what_is_there_and_ends_with_0(void **state) {
    (void)state;
    running v = START("--model", TOY, "--chunk", "4", "--grace", "300");
    buf bytes = long_request(0, 4000);
    const int fd = connect_to(v.port);
    send_all(fd, (str){bytes.p, bytes.n});
    await_metric(v.port, "clef_running", 1);
    kill(v.pid, SIGTERM);
    await_log(&v, "stopping");
    answer a = finish(fd);
    expect(a, 200, "\"answers\"");
    assert_int_equal(connect_to(v.port), -1);
    assert_int_equal(wait_for_end(v.pid), 0);
    buf_free(&bytes);
}

static void after_the_grace_time_requests_are_503(void **state) {
    (void)state;
    running v = START("--model", TOY, "--chunk", "1", "--grace", "0");
    buf bytes = long_request(0, 15000);
    const int fd = connect_to(v.port);
    send_all(fd, (str){bytes.p, bytes.n});
    await_metric(v.port, "clef_running", 1);
    kill(v.pid, SIGINT);
    answer a = finish(fd);
    expect(a, 503, "The server is stopping");
    assert_int_equal(wait_for_end(v.pid), 0);
    buf_free(&bytes);
}

static void a_second_signal_ends_at_once(void **state) {
    (void)state;
    running v = START("--model", TOY, "--chunk", "1");
    buf bytes = long_request(0, 15000);
    const int fd = connect_to(v.port);
    send_all(fd, (str){bytes.p, bytes.n});
    await_metric(v.port, "clef_running", 1);
    kill(v.pid, SIGTERM);
    await_log(&v, "stopping");
    kill(v.pid, SIGTERM);
    assert_int_equal(wait_for_end(v.pid), 128 + SIGTERM);
    close(fd);
    buf_free(&bytes);
}

static void the_log_holds_no_states_unless_asked(void **state) {
    (void)state;
    static const char SECRET[] = "{\"state\":\"s3cret\",\"questions\":{\"q\":{\"type\":\"noul\"}}}";
    running v = START("--model", TOY, "--log-format", "json");
    expect(post(v.port, SECRET), 200, NULL);
    expect(ask_with(v.port, "POST /v1/systemone", "X-Request-Id: \"\x1b[31m\r\n", STR("{s3cret")),
           400, NULL);
    stop(&v);
    buf log = read_log(&v);
    assert_null(strstr(log.p, "s3cret"));
    assert_non_null(strstr(log.p, "\"path\": \"/v1/systemone\", \"status\": 200, "));
    arena mem = {0};
    for (char *line = strtok(log.p, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const json *root = NULL;
        assert_int_equal(json_parse(&root, str_of(line), "", &(json_limits){0}, &mem, NULL),
                         CLEF_OK);
    }
    arena_free(&mem);
    buf_free(&log);
    v = START("--model", TOY, "--log-bodies");
    expect(post(v.port, SECRET), 200, NULL);
    stop(&v);
    log = read_log(&v);
    assert_non_null(strstr(log.p, "s3cret"));
    buf_free(&log);
}

static void a_file_says_what_options_say(void **state) {
    (void)state;
    folder_write(&dir, "clef.conf",
                 STR("# a server\n\nmodel = " TOY_TEXT
                     "\n  served-name=mine \nalias = one two\nwarmup\n"
                     "max-questions = 1\n"));
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(&dir, "clef.conf"));
    running v = START("--config", path, "--max-questions", "2");
    expect(post(v.port,
                "{\"model\":\"two\",\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"noul\"},"
                "\"b\":{\"type\":\"noul\"}}}"),
           200, "{\"model\": \"mine\", ");
    stop(&v);
}

/* Runs the program to its end; its standard error is in the folder's "stderr". */
static int run_to_end(const char *const *words) {
    char err_path[1024];
    snprintf(err_path, sizeof err_path, "%s", folder_path(&dir, "stderr"));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *copy[MAX_WORDS] = {strdup(PROGRAM), strdup("serve")};
        for (int i = 0; words[i] != NULL; i++) copy[i + 2] = strdup(words[i]);
        const int fd = open(err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execv(copy[0], copy);
        _exit(127);
    }
    return wait_for_end(pid);
}

static void expect_end(int status, const char *words_wanted, const char *const *words) {
    const int got = run_to_end(words);
    buf text = {0};
    assert_int_equal(file_read(&text, folder_path(&dir, "stderr"), 1 << 20, NULL), CLEF_OK);
    buf_add(&text, "", 0);
    const char *first_end = strchr(text.p, '\n');
    if (got != status || strstr(text.p, words_wanted) == NULL || first_end == NULL ||
        first_end[1] != '\0')
        fail_msg("wanted %d and one line with \"%s\", got %d: %s", status, words_wanted, got,
                 text.p);
    buf_free(&text);
}

#define ENDS(status, wanted, ...) \
    expect_end(status, wanted, (const char *const[]){__VA_ARGS__, NULL})

static void what_cannot_start_is_one_line_and_2(void **state) {
    (void)state;
    char port[8], conf[1024];
    snprintf(port, sizeof port, "%u", shared.port);
    ENDS(2, "cannot listen on 127.0.0.1", "--model", TOY, "--log", "none", "--port", port);
    ENDS(2, "no-such-folder", "--model", "no-such-folder", "--log", "none", "--port", "0");
    ENDS(2, "no-such-keys", "--model", TOY, "--log", "none", "--port", "0", "--api-key-file",
         "no-such-keys");
    ENDS(2, "no model is given", "--port", "0");
    ENDS(2, "--port: '65536'", "--model", TOY, "--port", "65536");
    ENDS(2, "--host no.such.host.invalid", "--model", TOY, "--log", "none", "--host",
         "no.such.host.invalid");
    folder_write(&dir, "bad.conf", STR("model = " TOY_TEXT "\nporte = 1\n"));
    snprintf(conf, sizeof conf, "%s", folder_path(&dir, "bad.conf"));
    ENDS(2, "bad.conf: unknown option '--porte', did you mean '--port'?", "--config", conf);
    folder_write(&dir, "bad.conf", STR("model = " TOY_TEXT "\nhelp\n"));
    ENDS(2, "bad.conf: help is for the command line alone", "--config", conf);
}

static void check_looks_and_does_not_listen(void **state) {
    (void)state;
    char port[8];
    snprintf(port, sizeof port, "%u", shared.port); /* in use: no matter */
    ENDS(0, "the configuration is right", "--model", TOY, "--port", port, "--check");
    ENDS(2, "no-such-folder", "--model", "no-such-folder", "--check");
    ENDS(2, "", "--model", TOY, "--api-key", "a b", "--check");
}

static void ipv6_works(void **state) {
    (void)state;
    running v = START("--model", TOY, "--host", "::1");
    const struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_port = htons(v.port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    send_all(fd, STR("GET /health HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n"));
    answer a = finish(fd);
    expect(a, 200, NULL);
    stop(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_is_429_and_counted),
        cmocka_unit_test(equal_requests_in_flight_are_computed_once),
        cmocka_unit_test(a_client_that_leaves_takes_its_request_along),
        cmocka_unit_test(clients_that_leave_at_once_do_no_harm),
        cmocka_unit_test(a_request_past_its_deadline_is_503),
        cmocka_unit_test(two_hundred_slow_clients_hold_nobody_up),
        cmocka_unit_test(a_client_that_is_too_slow_is_408),
        cmocka_unit_test(a_server_that_was_held_up_does_not_blame_its_clients),
        cmocka_unit_test(connections_beyond_the_limit_are_503),
        cmocka_unit_test(without_descriptors_the_server_waits_and_does_not_spin),
        cmocka_unit_test(an_idle_server_takes_no_processor_time),
        cmocka_unit_test(without_a_thread_a_request_is_503),
        cmocka_unit_test(a_wrong_key_file_leaves_the_keys_and_the_log_is_opened_again),
        cmocka_unit_test(bodies_of_many_values_are_held_to_a_ceiling),
        cmocka_unit_test(a_hundred_clients_get_their_own_answers),
        cmocka_unit_test(sigterm_answers_what_is_there_and_ends_with_0),
        cmocka_unit_test(after_the_grace_time_requests_are_503),
        cmocka_unit_test(a_second_signal_ends_at_once),
        cmocka_unit_test(the_log_holds_no_states_unless_asked),
        cmocka_unit_test(a_file_says_what_options_say),
        cmocka_unit_test(what_cannot_start_is_one_line_and_2),
        cmocka_unit_test(check_looks_and_does_not_listen),
        cmocka_unit_test(ipv6_works),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
