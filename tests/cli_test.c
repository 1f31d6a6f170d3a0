/* cli_test.c - the program from outside: what it prints where, what it leaves on the disk, how it
 * ends. Every test runs the built clef as a user's shell would. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/utf8.h"
#include "golden.h"
#include "program.h"

#define SCRATCH BUILD_DIR "cli_test.d/"
#define TOY TESTDATA "toy-r2"

static const char good[] =
    "{\"model\":\"m\",\"state\":\"The box was open.\",\"questions\":{\"open\":{\"type\":\"noul\"},"
    "\"who\":{\"type\":\"choice\",\"criteria\":{\"b\":\"Billing\",\"a\":null}}}}";

/* What a finished run left behind. */
typedef struct {
    int status; /* exit status, or 128 + the signal that ended it */
    buf out, err;
} result;

static void done(result *r) {
    buf_free(&r->out);
    buf_free(&r->err);
}

static void write_file(const char *path, str text) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    for (size_t at = 0; at < text.n;) {
        const ssize_t n = write(fd, text.p + at, text.n - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_int_equal(close(fd), 0);
}

static buf read_file(const char *path) {
    buf out = {0};
    clef_error err = {0};
    if (file_read(&out, path, 1 << 28, &err) != CLEF_OK) fail_msg("%s", err.text);
    buf_add(&out, "", 0); /* a terminator even when the file is empty */
    return out;
}

static void collect(const char **words, va_list more) {
    int n = 0;
    words[n++] = PROGRAM;
    for (;;) {
        assert_true(n < PROGRAM_MAX_WORDS);
        words[n] = va_arg(more, const char *);
        if (words[n++] == NULL) break;
    }
}

/* Runs the program on `in` with the words up to a NULL. */
static result run(str in, ...) {
    const char *words[PROGRAM_MAX_WORDS];
    va_list more;
    va_start(more, in);
    collect(words, more);
    va_end(more);
    write_file(SCRATCH "in", in);
    const int fds[] = {open(SCRATCH "in", O_RDONLY | O_CLOEXEC),
                       open(SCRATCH "out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
                       open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
    result r = {0};
    r.status = program_wait(program_start(fds[0], fds[1], fds[2], words));
    for (int i = 0; i < 3; i++) close(fds[i]);
    r.out = read_file(SCRATCH "out");
    r.err = read_file(SCRATCH "err");
    return r;
}

/* The run succeeded and kept silent on standard error. */
static void all_well(const result *r) {
    if (r->status != 0 || r->err.n > 0) fail_msg("status %d: %s", r->status, r->err.p);
}

/* The run failed with that status, printed nothing but one line of valid UTF-8 on standard error,
 * and the line has these words. */
static void failed(result *r, int status, const char *words) {
    if (r->status != status || strstr(r->err.p, words) == NULL)
        fail_msg("status %d: %s\nwanted %d: %s", r->status, r->err.p, status, words);
    assert_int_equal(r->out.n, 0);
    assert_true(r->err.n > 7 && memcmp(r->err.p, "clef: ", 6) == 0);
    assert_ptr_equal(strchr(r->err.p, '\n'), r->err.p + r->err.n - 1);
    assert_int_equal(utf8_check(r->err.p, r->err.n), r->err.n);
    done(r);
}

/* Files of the scratch folder whose names begin so. */
static size_t count_files(const char *begin) {
    char command[512];
    snprintf(command, sizeof command, "ls -A " SCRATCH " | grep -c '^%s'", begin);
    FILE *p = popen(command, "r"); /* NOLINT(cert-env33-c): a command of the test's own */
    assert_non_null(p);
    unsigned n = 0;
    assert_int_equal(fscanf(p, "%u", &n), 1); /* NOLINT(cert-err34-c): grep prints a number */
    pclose(p);
    return n;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The options that repeat a recorded case. */
typedef struct {
    char folder[64], length[16], state[16];
    const char *policy;
} repeat;

static repeat repeat_of(const golden *g) {
    repeat r = {.policy = g->limits.control == CLEF_CONTROL_PLAIN ? "plain" : "reference"};
    snprintf(r.folder, sizeof r.folder, TESTDATA "%s", g->toy);
    snprintf(r.length, sizeof r.length, "%u", (unsigned)g->limits.max_length);
    snprintf(r.state, sizeof r.state, "%u", (unsigned)g->limits.max_state_tokens);
    return r;
}

/* Runs a recorded case through `command` with one more option. */
static result run_case(const golden *g, const char *command, const char *extra, const char *value) {
    const repeat r = repeat_of(g);
    if (g->limits.cap_state)
        return run(g->request, command, "--model", r.folder, "--control-tokens", r.policy,
                   "--max-length", r.length, "--truncate", "state", extra, value,
                   "--max-state-tokens", r.state, NULL);
    return run(g->request, command, "--model", r.folder, "--control-tokens", r.policy,
               "--max-length", r.length, "--truncate", "state", extra, value, NULL);
}

/* Whether two answers are the same bytes, but for printed numbers one step of the last decimal
 * apart; such numbers are added to *steps. Both sides sum in floats in their own order, so a
 * probability beside the middle of two decimals may fall to either. */
static bool same_answer(const char *a, const char *b, size_t *steps) {
    while (*a != '\0' && *b != '\0') {
        if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
            char *end_a = NULL, *end_b = NULL;
            const double x = strtod(a, &end_a), y = strtod(b, &end_b);
            if (fabs(x - y) > 1.5e-4) return false;
            *steps += end_a - a != end_b - b || memcmp(a, b, (size_t)(end_a - a)) != 0;
            a = end_a;
            b = end_b;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

/* What the program has to print for a recorded case: the reference's answer, and, where the state
 * was cut, how much of it, which the reference does not tell. In the case's memory. */
static const char *wanted_answer(golden *g, str answer) {
    uint64_t kept = 0, total = 0;
    assert_true(json_u64(&kept, json_get(json_get(g->doc, STR("tokens")), STR("state")), 1 << 20));
    assert_true(json_u64(&total, json_get(g->doc, STR("state_total")), 1 << 20));
    buf text = {0};
    buf_add_str(&text, answer);
    if (total > kept) {
        text.n--; /* the last brace */
        buf_printf(&text, ", \"x_truncated_tokens\": %u}", (unsigned)(total - kept));
    }
    const char *copy = arena_copy(&g->mem, (str){text.p, text.n}).p;
    buf_free(&text);
    return copy;
}

static void ask_prints_the_recorded_answers_of_the_reference(void **state) {
    (void)state;
    size_t n = 0, asked = 0, steps = 0, bytes = 0;
    const char(*names)[64] = golden_names(&n, NULL);
    for (size_t i = 0; i < n; i++) {
        golden g;
        golden_load(&g, names[i]);
        const json *answer = json_get(g.doc, STR("answer"));
        result r = run_case(&g, "ask", "--digits", "4");
        if (answer == NULL) {
            failed(&r, 2, "maximum");
        } else {
            all_well(&r);
            assert_int_equal(r.out.p[r.out.n - 1], '\n');
            r.out.p[r.out.n - 1] = '\0';
            const char *wanted = wanted_answer(&g, answer->text);
            if (!same_answer(r.out.p, wanted, &steps))
                fail_msg("%s: %s\nwanted %s", names[i], r.out.p, wanted);
            bytes += r.out.n;
            done(&r);
            asked++;
        }
        golden_free(&g);
    }
    /* A number every few thousand bytes is what rounding explains; more is a drift. */
    assert_true(asked > 20 && steps <= bytes / 2000);
}

static bool same_numbers(const json *a, const json *b) {
    if (a == NULL || b == NULL || a->n != b->n) return false;
    const json *x = a->first, *y = b->first;
    for (; x != NULL; x = x->next, y = y->next)
        if (!str_equal(x->text, y->text)) return false;
    return true;
}

static void encode_prints_the_recorded_ids_and_spans(void **state) {
    (void)state;
    size_t n = 0;
    const char(*names)[64] = golden_names(&n, NULL);
    for (size_t i = 0; i < n; i++) {
        golden g;
        golden_load(&g, names[i]);
        result r = run_case(&g, "encode", "--out", "/dev/stdout");
        if (json_get(g.doc, STR("ids")) == NULL) {
            failed(&r, 2, "maximum");
            golden_free(&g);
            continue;
        }
        all_well(&r);
        const json *got = NULL;
        clef_error err = {0};
        assert_int_equal(
            json_parse(&got, (str){r.out.p, r.out.n}, "encode", &(json_limits){0}, &g.mem, &err),
            CLEF_OK);
        if (!same_numbers(json_get(got, STR("ids")), json_get(g.doc, STR("ids"))))
            fail_msg("%s: other ids", names[i]);
        const json *x = json_get(got, STR("questions")), *y = json_get(g.doc, STR("questions"));
        assert_int_equal(x->n, y->n);
        for (x = x->first, y = y->first; x != NULL; x = x->next, y = y->next) {
            assert_true(str_equal(json_get(x, STR("id"))->text, json_get(y, STR("id"))->text));
            assert_true(same_numbers(json_get(x, STR("span")), json_get(y, STR("span"))));
            const json *o = json_get(x, STR("options")), *p = json_get(y, STR("options"));
            assert_int_equal(o->n, p->n);
            for (o = o->first, p = p->first; o != NULL; o = o->next, p = p->next) {
                assert_true(str_equal(json_get(o, STR("id"))->text, json_get(p, STR("id"))->text));
                assert_true(same_numbers(json_get(o, STR("span")), json_get(p, STR("span"))));
            }
        }
        x = json_get(got, STR("tokens"));
        y = json_get(g.doc, STR("tokens"));
        static const char *const parts[] = {"prefix", "media", "state", "schema", "suffix"};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            assert_true(str_equal(json_get(x, str_of(parts[k]))->text,
                                  json_get(y, str_of(parts[k]))->text));
        done(&r);
        golden_free(&g);
    }
}

static void encode_needs_no_weights(void **state) {
    (void)state;
    result a = run(str_of(good), "encode", "--model", TOY, NULL);
    all_well(&a);
    result b = run(str_of(good), "encode", "--tokenizer", TOY "/tokenizer.json", NULL);
    all_well(&b);
    assert_string_equal(a.out.p, b.out.p);
    done(&a);
    done(&b);
}

static void threads_kernels_and_chunks_leave_the_answer_alone(void **state) {
    (void)state;
    result a = run(str_of(good), "ask", TOY, "--digits", "7", "--threads", "1", "--logits", NULL);
    result b = run(str_of(good), "ask", TOY, "--digits", "7", "--threads", "2", "--kernels",
                   "scalar", "--chunk", "64", "--logits", NULL);
    assert_int_equal(a.status, 0);
    assert_string_equal(a.out.p, b.out.p);
    assert_string_equal(a.err.p, b.err.p);
    done(&a);
    done(&b);
}

static void the_request_may_come_from_a_file_a_dash_or_a_pipe(void **state) {
    (void)state;
    result a = run(str_of(good), "ask", TOY, NULL);
    all_well(&a);
    result b = run(str_of(good), "ask", TOY, "--request", "-", NULL);
    all_well(&b);
    write_file(SCRATCH "request.json", str_of(good));
    result c = run(STR(""), "ask", TOY, "--request", SCRATCH "request.json", NULL);
    all_well(&c);
    assert_string_equal(a.out.p, b.out.p);
    assert_string_equal(a.out.p, c.out.p);

    int in[2];
    assert_int_equal(pipe(in), 0);
    fcntl(in[1], F_SETFD, FD_CLOEXEC); /* else the program holds its own input open */
    const char *const words[] = {PROGRAM, "ask", TOY, "--out", SCRATCH "from_pipe", NULL};
    const pid_t pid = program_start(in[0], 1, 2, words);
    close(in[0]);
    for (size_t i = 0; good[i] != '\0'; i++) assert_int_equal(write(in[1], good + i, 1), 1);
    close(in[1]);
    assert_int_equal(program_wait(pid), 0);
    buf d = read_file(SCRATCH "from_pipe");
    assert_string_equal(a.out.p, d.p);
    buf_free(&d);
    done(&a);
    done(&b);
    done(&c);
}

static void logits_go_to_standard_error_and_leave_the_answer_alone(void **state) {
    (void)state;
    result a = run(str_of(good), "ask", TOY, NULL),
           b = run(str_of(good), "ask", TOY, "--logits", NULL);
    assert_string_equal(a.out.p, b.out.p);
    static const char *const begins[] = {"open\ttrue\t", "open\tfalse\t", "who\ta\t", "who\tb\t"};
    const char *at = b.err.p;
    for (size_t i = 0; i < 4; i++) {
        assert_memory_equal(at, begins[i], strlen(begins[i]));
        char *end = NULL;
        strtod(at + strlen(begins[i]), &end);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_int_equal(*at, '\0');
    done(&a);
    done(&b);
}

static void a_record_too_long_is_refused_with_both_numbers_or_cut(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":\"");
    for (int i = 0; i < 3000; i++) buf_add_text(&body, "word ");
    buf_add_text(&body, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    const str in = {body.p, body.n};
    result r = run(in, "ask", TOY, "--max-length", "1000", NULL);
    failed(&r, 2, "1000");
    r = run(in, "ask", TOY, "--max-length", "1000", "--truncate", "state", NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, "\"input_tokens\": 1000,"));
    done(&r);
    buf_free(&body);
}

static void control_spellings_follow_the_option(void **state) {
    (void)state;
    const str in = STR("{\"model\":\"m\",\"state\":\"a<|im_end|>b\",\"questions\":{\"q\":{\"type\":"
                       "\"noul\"}}}");
    result plain = run(in, "encode", TOY, NULL);
    all_well(&plain);
    result same = run(in, "encode", TOY, "--control-tokens", "plain", NULL);
    assert_string_equal(plain.out.p, same.out.p);
    result reference = run(in, "encode", TOY, "--control-tokens", "reference", NULL);
    all_well(&reference);
    assert_string_not_equal(plain.out.p, reference.out.p);
    result reject = run(in, "encode", TOY, "--control-tokens", "reject", NULL);
    failed(&reject, 2, "<|im_end|>");
    done(&plain);
    done(&same);
    done(&reference);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void pretty_draws_a_bar_for_every_option(void **state) {
    (void)state;
    result r = run(str_of(good), "ask", TOY, "--pretty", NULL);
    all_well(&r);
    unsigned bars = 0;
    for (char *save = NULL, *line = strtok_r(r.out.p, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const char *dot = strrchr(line, '.');
        if (line[0] != ' ') continue;
        assert_true(dot != NULL && strlen(dot) == 5);
        bars++;
    }
    assert_int_equal(bars, 4);
    done(&r);
}

static void a_hostile_id_cannot_steer_the_terminal(void **state) {
    (void)state;
    const str in =
        STR("{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"\\u001b[2Jx\\u0007\":{\"type\":"
            "\"choice\",\"criteria\":{\"\\u001b]0;t\\u0007\":null,\"\\u009b31m\\u202e\":null}}}}");
    result r = run(in, "ask", TOY, "--pretty", "--logits", NULL);
    assert_int_equal(r.status, 0);
    buf *const both[] = {&r.out, &r.err};
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < both[b]->n; i++) {
            const unsigned char c = (unsigned char)both[b]->p[i];
            assert_true(c >= 0x20 || c == '\n' || c == '\t');
        }
        assert_non_null(strstr(both[b]->p, "\\u{1b}[2Jx\\u{7}"));
        assert_non_null(strstr(both[b]->p, "\\u{9b}31m\\u{202e}"));
    }
    done(&r);
}

static void pretty_on_a_terminal_has_colour_and_its_width(void **state) {
    (void)state;
    setenv("TERM", "xterm", 1);
    for (int plain = 0; plain < 2; plain++) {
        if (plain) setenv("NO_COLOR", "1", 1);
        int master = -1;
        const int slave = program_terminal(&master);
        write_file(SCRATCH "request.json", str_of(good));
        const char *const words[] = {
            PROGRAM, "ask", TOY, "--pretty", "--request", SCRATCH "request.json", NULL};
        const pid_t pid = program_start(slave, slave, slave, words);
        close(slave);
        buf seen = {0};
        program_read_until(&seen, master, NULL);
        assert_int_equal(program_wait(pid), 0);
        close(master);
        assert_non_null(seen.p);
        assert_int_equal(strstr(seen.p, "\x1b[1m") != NULL, !plain);
        size_t columns = 0, widest = 0; /* of the lines without colour */
        for (size_t i = 0; i < seen.n; i++) {
            columns = seen.p[i] == '\n' || seen.p[i] == '\r' ? 0 : columns + 1;
            if (columns > widest) widest = columns;
        }
        if (plain) assert_int_equal(widest, 59); /* a full last column wraps on some terminals */
        buf_free(&seen);
    }
    unsetenv("NO_COLOR");
}

/* A request that keeps the scalar kernels busy for some seconds, in SCRATCH "long.json". */
static void write_long_request(void) {
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":\"");
    for (int i = 0; i < 7000; i++) buf_add_text(&body, "1 ");
    buf_add_text(&body, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    write_file(SCRATCH "long.json", (str){body.p, body.n});
    buf_free(&body);
}

static void progress_shows_a_bar_and_a_signal_stops_between_chunks(void **state) {
    (void)state;
    write_long_request();
    int master = -1;
    const int slave = program_terminal(&master);
    const char *const words[] = {PROGRAM,
                                 "ask",
                                 (TESTDATA "toy-real-heads"),
                                 "--progress",
                                 "--chunk",
                                 "64",
                                 "--kernels",
                                 "scalar",
                                 "--threads",
                                 "1",
                                 "--request",
                                 (SCRATCH "long.json"),
                                 "--out",
                                 (SCRATCH "stopped"),
                                 NULL};
    const pid_t pid = program_start(slave, slave, slave, words);
    close(slave);
    buf seen = {0};
    assert_true(program_read_until(&seen, master, "tokens/s"));
    assert_int_equal(kill(pid, SIGTERM), 0);
    program_read_until(&seen, master, NULL);
    assert_int_equal(program_wait(pid), 128 + SIGTERM);
    assert_true(seen.p != NULL &&
                strstr(seen.p, "\r\x1b[Kclef: ") != NULL); /* the bar is wiped first */
    assert_int_equal(count_files("stopped"), 0);
    assert_int_equal(count_files("[.]clef"), 0);
    buf_free(&seen);
    close(master);
}

static void progress_is_silent_when_standard_error_is_no_terminal(void **state) {
    (void)state;
    result r = run(str_of(good), "ask", TOY, "--progress", NULL);
    all_well(&r);
    done(&r);
}

static void an_interrupt_while_reading_ends_with_130(void **state) {
    (void)state;
    int in[2], err[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(err), 0);
    fcntl(in[1], F_SETFD, FD_CLOEXEC);
    const char *const words[] = {PROGRAM, "ask", TOY, NULL};
    const pid_t pid = program_start(in[0], err[1], err[1], words);
    close(in[0]);
    close(err[1]);
    /* It reads the first byte only after the handlers stand. */
    assert_int_equal(write(in[1], "{", 1), 1);
    for (int left = 1; left != 0;) {
        assert_int_equal(ioctl(in[1], FIONREAD, &left), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(pid, SIGINT);
    assert_int_equal(program_wait(pid), 130);
    char line[200] = "";
    assert_true(read(err[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "clef: stopped by an interrupt\n");
    close(in[1]);
    close(err[0]);
}

/* What a worker or the main thread gets when a mapped file has shrunk. */
static void a_lost_page_ends_with_one_line(void **state) {
    (void)state;
    int in[2];
    assert_int_equal(pipe(in), 0);
    fcntl(in[1], F_SETFD, FD_CLOEXEC);
    const int err = open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const char *const words[] = {PROGRAM, "encode", TOY, NULL};
    const pid_t pid = program_start(in[0], err, err, words);
    assert_int_equal(write(in[1], "{", 1), 1);
    for (int left = 1; left != 0;) {
        assert_int_equal(ioctl(in[1], FIONREAD, &left), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(pid, SIGBUS);
    assert_int_equal(program_wait(pid), 2);
    close(in[0]);
    close(in[1]);
    close(err);
    buf text = read_file(SCRATCH "err");
    assert_string_equal(text.p,
                        "clef: a model file shrank or could not be read while it was in use\n");
    buf_free(&text);
}

static void an_interrupt_that_the_parent_ignores_is_ignored(void **state) {
    (void)state;
    int in[2];
    assert_int_equal(pipe(in), 0);
    fcntl(in[1], F_SETFD, FD_CLOEXEC);
    const int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const char *const words[] = {PROGRAM, "encode", TOY, NULL};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    assert_int_equal(sigaction(SIGINT, &ignore, &before), 0);
    const pid_t pid = program_start(in[0], out, out, words);
    assert_int_equal(sigaction(SIGINT, &before, NULL), 0);
    assert_int_equal(write(in[1], good, 1), 1);
    for (int left = 1; left != 0;) {
        assert_int_equal(ioctl(in[1], FIONREAD, &left), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(pid, SIGINT);
    assert_int_equal(write(in[1], good + 1, sizeof good - 2), sizeof good - 2);
    close(in[1]);
    assert_int_equal(program_wait(pid), 0);
    close(in[0]);
    close(out);
}

/* Waits until the process has its handlers and sleeps in a call of the system. */
static void wait_asleep(pid_t pid) {
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    for (int asleep = 0; asleep < 5;) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        const ssize_t n = read(fd, text, sizeof text - 1);
        assert_true(n > 0);
        text[n] = '\0';
        close(fd);
        const char *caught = strstr(text, "SigCgt:");
        assert_non_null(caught);
        const bool handled = (strtoull(caught + 7, NULL, 16) & 1u << (SIGINT - 1)) != 0;
        asleep = handled && strstr(text, "State:\tS") != NULL ? asleep + 1 : 0;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static void an_interrupt_ends_the_wait_for_a_pipe_to_open(void **state) {
    (void)state;
    unlink(SCRATCH "pipe");
    assert_int_equal(mkfifo(SCRATCH "pipe", 0600), 0);
    write_file(SCRATCH "request.json", str_of(good));
    static const char *const commands[][8] = {
        {PROGRAM, "ask", TOY, "--request", SCRATCH "pipe", NULL},
        {PROGRAM, "encode", TOY, "--request", SCRATCH "request.json", "--out", SCRATCH "pipe",
         NULL}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
        const int err = open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        const pid_t pid = program_start(none, none, err, commands[i]);
        wait_asleep(pid);
        kill(pid, SIGINT);
        assert_int_equal(program_wait(pid), 130);
        close(none);
        close(err);
        buf text = read_file(SCRATCH "err");
        assert_string_equal(text.p, "clef: stopped by an interrupt\n");
        buf_free(&text);
    }
    unlink(SCRATCH "pipe");
}

/* ---- files ----------------------------------------------------------------------------------- */

static void out_replaces_a_file_whole_and_keeps_its_mode(void **state) {
    (void)state;
    write_file(SCRATCH "old", STR("old"));
    chmod(SCRATCH "old", 0640);
    result a = run(str_of(good), "ask", TOY, NULL);
    result b = run(str_of(good), "ask", TOY, "--out", SCRATCH "old", NULL);
    all_well(&b);
    assert_int_equal(b.out.n, 0);
    buf now = read_file(SCRATCH "old");
    assert_string_equal(now.p, a.out.p);
    struct stat st;
    assert_int_equal(stat(SCRATCH "old", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(count_files("old"), 1);
    assert_int_equal(count_files("[.]clef"), 0);
    buf_free(&now);
    done(&a);
    done(&b);
}

static void out_may_have_the_longest_name_there_is(void **state) {
    (void)state;
    char path[sizeof SCRATCH + 255] = SCRATCH;
    memset(path + sizeof SCRATCH - 1, 'n', 255);
    unlink(path);
    result r = run(str_of(good), "encode", TOY, "--out", path, NULL);
    all_well(&r);
    buf now = read_file(path);
    assert_memory_equal(now.p, "{\"ids\"", 6);
    assert_int_equal(count_files("[.]clef"), 0);
    buf_free(&now);
    done(&r);
    unlink(path);
}

static void out_follows_a_link_to_its_file(void **state) {
    (void)state;
    write_file(SCRATCH "target", STR("old"));
    unlink(SCRATCH "link");
    assert_int_equal(symlink("target", SCRATCH "link"), 0);
    result r = run(str_of(good), "encode", TOY, "--out", SCRATCH "link", NULL);
    all_well(&r);
    struct stat st;
    assert_int_equal(lstat(SCRATCH "link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    buf now = read_file(SCRATCH "target");
    assert_memory_equal(now.p, "{\"ids\"", 6);
    buf_free(&now);
    done(&r);
}

static void a_failure_leaves_the_old_file_alone(void **state) {
    (void)state;
    write_file(SCRATCH "kept", STR("old"));
    result r = run(STR("{"), "ask", TOY, "--out", SCRATCH "kept", NULL);
    failed(&r, 2, "request: byte 1: ");
    buf now = read_file(SCRATCH "kept");
    assert_string_equal(now.p, "old");
    buf_free(&now);
    assert_int_equal(count_files("kept"), 1);
    assert_int_equal(count_files("[.]clef"), 0);
}

static void an_impossible_out_is_refused(void **state) {
    (void)state;
    result r = run(str_of(good), "ask", TOY, "--out", SCRATCH, NULL);
    failed(&r, 2, "a folder, wanted a file");
    r = run(str_of(good), "ask", TOY, "--out", SCRATCH "none/x", NULL);
    failed(&r, 2, SCRATCH "none/x: ");
    r = run(str_of(good), "ask", TOY, "--out", SCRATCH "in/x", NULL);
    failed(&r, 2, "Not a directory");
}

static void a_full_disk_is_noticed(void **state) {
    (void)state;
    result r = run(str_of(good), "ask", TOY, "--out", "/dev/full", NULL);
    failed(&r, 2, "/dev/full: No space left on device");
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const int in = open(SCRATCH "request.json", O_RDONLY | O_CLOEXEC);
    const int err = open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    static const char *const commands[][5] = {{PROGRAM, "ask", TOY, NULL},
                                              {PROGRAM, "info", TOY, NULL},
                                              {PROGRAM, "--help", NULL},
                                              {PROGRAM, "--version", NULL}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        lseek(in, 0, SEEK_SET);
        assert_int_equal(program_wait(program_start(in, full, err, commands[i])), 2);
    }
    close(full);
    close(in);
    close(err);
    buf text = read_file(SCRATCH "err");
    assert_non_null(strstr(text.p, "clef: standard output: No space left on device\n"));
    buf_free(&text);
}

static void a_limit_of_file_sizes_is_an_error_and_no_signal(void **state) {
    (void)state;
    write_file(SCRATCH "request.json", str_of(good));
    unlink(SCRATCH "limited");
    const int in = open(SCRATCH "request.json", O_RDONLY | O_CLOEXEC);
    int err[2];
    assert_int_equal(pipe(err), 0);
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = before;
    now.rlim_cur = 16;
    const char *const words[] = {PROGRAM, "encode", TOY, "--out", SCRATCH "limited", NULL};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    const pid_t pid = program_start(in, err[1], err[1], words);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(program_wait(pid), 2);
    char line[200] = "";
    assert_true(read(err[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "clef: " SCRATCH "limited: File too large\n");
    assert_int_equal(count_files("limited"), 0);
    assert_int_equal(count_files("[.]clef"), 0);
    close(in);
    close(err[0]);
    close(err[1]);
}

static void a_closed_pipe_is_an_error_and_no_signal(void **state) {
    (void)state;
    write_file(SCRATCH "request.json", str_of(good));
    const int in = open(SCRATCH "request.json", O_RDONLY | O_CLOEXEC);
    const int err = open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int out[2];
    assert_int_equal(pipe(out), 0);
    close(out[0]);
    const char *const words[] = {PROGRAM, "ask", TOY, NULL};
    assert_int_equal(program_wait(program_start(in, out[1], err, words)), 2);
    close(out[1]);
    close(in);
    close(err);
    buf text = read_file(SCRATCH "err");
    assert_string_equal(text.p, "clef: standard output: Broken pipe\n");
    buf_free(&text);
}

static void closed_standard_descriptors_are_errors(void **state) {
    (void)state;
    const int in = open(SCRATCH "request.json", O_RDONLY | O_CLOEXEC);
    const int err = open(SCRATCH "err", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const char *const words[] = {PROGRAM, "ask", TOY, NULL};
    assert_int_equal(program_wait(program_start(in, -1, err, words)), 2);
    assert_int_equal(program_wait(program_start(-1, 1, err, words)), 2);
    close(in);
    close(err);
    buf text = read_file(SCRATCH "err");
    assert_string_equal(text.p, "clef: standard output: Bad file descriptor\n"
                                "clef: standard input: Bad file descriptor\n");
    buf_free(&text);
}

static void a_request_beyond_64_mib_is_refused(void **state) {
    (void)state;
    const int fd = open(SCRATCH "huge", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (64 << 20) + 1), 0); /* a hole: it takes no disk */
    close(fd);
    result r = run(STR(""), "ask", TOY, "--request", SCRATCH "huge", NULL);
    failed(&r, 2, SCRATCH "huge: a request has at most 67108864 bytes");
    unlink(SCRATCH "huge");
}

static void a_missing_request_file_is_named(void **state) {
    (void)state;
    result r = run(STR(""), "ask", TOY, "--request", SCRATCH "none.json", NULL);
    failed(&r, 2, SCRATCH "none.json: No such file or directory");
    r = run(STR(""), "ask", TOY, "--request", SCRATCH, NULL);
    failed(&r, 2, "Is a directory");
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void a_bad_request_gives_one_line_and_status_2(void **state) {
    (void)state;
#define QUESTIONS ",\"questions\":{\"q\":{\"type\":\"noul\"}}}"
    static const struct {
        str in;
        const char *words;
    } cases[] = {
        {STR("{:"), "byte 1: "},
        {STR(""), "byte 0: "},
        {STR("[]"), "must be an object"},
        {STR("\"x\""), "must be an object"},
        {STR("{\"questions\":\"a\"}"), "model and state are required"},
        {STR("{\"model\":123,\"state\":1" QUESTIONS), "found a number"},
        {STR("{\"model\":\"m\",\"state\":1,\"questions\":{\"q\":{\"type\":7}}}"),
         "questions.q.type: "},
        {STR("{\"model\":\"m\",\"state\":1,\"questions\":{\"\":{\"type\":\"noul\"}}}"), "empty id"},
        {STR("{\"model\":\"m\"" QUESTIONS), "state: "},
        {STR("{\"model\":\"m\",\"state\":\"\\ud800\"" QUESTIONS), "lone surrogate"},
        {STR("{\"model\":\"m\",\"state\":\"\xff\xfe\"" QUESTIONS), "byte 22: 0xff"},
        {STR("{\"model\":\"m\",\"state\":\"\xc0\x80\"" QUESTIONS), "byte 22: 0xc0"},
        {STR("{\"model\":\"m\",\"state\":\"\xf0\x9f\x98"), "byte 22: 0xf0"},
        {STR("{\"model\":\"m\",\"state\":\"\xc4\xe3\xba\xc3\"" QUESTIONS), "byte 22: 0xc4"},
        {STR("{\"model\":\"m\",\"state\":1" QUESTIONS "x"), "found 'x', wanted the end"},
        {STR("{\"model\":\"m\",\"state\":1" QUESTIONS "\0"), "found U+0000, wanted the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = run(cases[i].in, "ask", TOY, NULL);
        failed(&r, 2, cases[i].words);
        r = run(cases[i].in, "encode", TOY, NULL);
        failed(&r, 2, cases[i].words);
    }
#undef QUESTIONS
}

/* ---- pictures -------------------------------------------------------------------------------- */

#define SEEING TESTDATA "toy-vision"
#define PICTURE TESTDATA "media/smooth_33x31.png"

static void a_picture_from_a_file_is_answered_as_one_in_the_request_is(void **state) {
    (void)state;
    result plain = run(str_of(good), "ask", SEEING, "--digits", "7", NULL);
    result shown = run(str_of(good), "ask", SEEING, "--digits", "7", "--image", PICTURE, NULL);
    all_well(&plain);
    all_well(&shown);
    assert_string_not_equal(shown.out.p, plain.out.p);
    buf body = {0};
    buf_add(&body, good, strlen(good) - 1);
    buf_add_text(&body, ",\"images\":[\"file:" PICTURE "\"]}");
    result named = run((str){body.p, body.n}, "ask", SEEING, "--digits", "7", NULL);
    all_well(&named);
    assert_string_equal(named.out.p, shown.out.p);
    buf_free(&body);
    done(&plain);
    done(&shown);
    done(&named);
}

static void pictures_are_shown_in_the_order_of_the_options(void **state) {
    (void)state;
    result r = run(str_of(good), "encode", SEEING, "--image", PICTURE, "--grid", "256", "--image",
                   TESTDATA "media/smooth_640x480.png", NULL);
    all_well(&r);
    const char *first = strstr(r.out.p, "\"grid\": [1, 16, 16], \"tokens\": 64");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "\"grid\": [1, 16, 16], \"tokens\": 64"));
    done(&r);
    r = run(str_of(good), "encode", SEEING, "--image", PICTURE, "--image",
            TESTDATA "media/ratio_201x1.png", NULL);
    failed(&r, 2, "images[1]: 201 x 1 pixels: one side may be at most 200 times the other");
    r = run(str_of(good), "encode", SEEING, "--max-media-pixels", "308222", "--image", PICTURE,
            "--image", TESTDATA "media/smooth_640x480.png", NULL);
    failed(&r, 2, "images[1]: the pictures up to this one have ");
}

static void a_picture_that_cannot_be_read_gives_one_line_and_status_2(void **state) {
    (void)state;
    write_file(SCRATCH "text.jpg", STR("hello"));
    write_file(SCRATCH "empty.png", STR(""));
    unlink(SCRATCH "fifo.png");
    assert_int_equal(mkfifo(SCRATCH "fifo.png", 0644), 0);
    static const struct {
        const char *path, *words;
    } cases[] = {
        {SCRATCH "none.png", "images[0]: " SCRATCH "none.png: No such file"},
        {SCRATCH, "a folder, wanted a regular file"},
        {SCRATCH "fifo.png", "not a regular file, wanted a regular file"},
        {SCRATCH "empty.png", "images[0]: empty"},
        {SCRATCH "text.jpg", "images[0]: 5 bytes that are no picture"},
        {"-", "images[0]: -: No such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = run(str_of(good), "ask", SEEING, "--image", cases[i].path, NULL);
        failed(&r, 2, cases[i].words);
    }
    result r = run(str_of(good), "ask", TOY, "--image", PICTURE, NULL);
    failed(&r, 2, "the model has no vision tower");
    r = run(str_of(good), "ask", SEEING, "--max-length", "150", "--grid", "448", "--truncate",
            "state", "--image", PICTURE, NULL);
    failed(&r, 2,
           "images[0]: it takes 196 tokens behind 0 of those before it, the limit of a "
           "record is 150");
    unlink(SCRATCH "fifo.png");
}

static void deep_nesting_is_refused_not_a_crash(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":");
    for (int i = 0; i < 100000; i++) buf_add_char(&body, '[');
    for (int i = 0; i < 100000; i++) buf_add_char(&body, ']');
    buf_add_text(&body, ",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    result r = run((str){body.p, body.n}, "ask", TOY, NULL);
    failed(&r, 2, "nested deeper than 512 levels");
    buf_free(&body);
}

static void a_bad_model_is_named(void **state) {
    (void)state;
    result r = run(str_of(good), "ask", "--model", SCRATCH "none", NULL);
    failed(&r, 2, "none");
    r = run(str_of(good), "ask", "--model", SCRATCH, NULL);
    failed(&r, 2, SCRATCH);
    r = run(str_of(good), "ask", "--model", TOY, "--kernels", "avx9000", NULL);
    failed(&r, 2, "avx9000");
    r = run(str_of(good), "encode", "--tokenizer", TOY "/config.json", NULL);
    failed(&r, 2, "config.json");
}

static void a_checkpoint_without_a_head_says_so(void **state) {
    (void)state;
    const char command[] = "rm -rf " SCRATCH "headless && cp -r " TOY " " SCRATCH "headless && "
                           "rm " SCRATCH "headless/joint_head*";
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a command of the test's own */
    result r = run(str_of(good), "ask", SCRATCH "headless", NULL);
    failed(&r, 2, "joint_head");
    r = run(STR(""), "info", SCRATCH "headless", NULL);
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.out.p, "joint_head"));
    assert_string_equal(r.err.p, "clef: " SCRATCH "headless would not load\n");
    done(&r);
}

/* ---- the other commands ---------------------------------------------------------------------- */

static void a_name_is_found_in_the_hub_cache(void **state) {
    (void)state;
    const char command[] =
        "cd " SCRATCH " && rm -rf hub && mkdir -p hub/models--Org--toy/refs "
        "hub/models--Org--toy/snapshots hub/models--Org--toy/blobs && "
        "printf 0123456789012345678901234567890123456789 > hub/models--Org--toy/refs/main";
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a command of the test's own */
    /* As the hub lays it out: the snapshot holds links into blobs. */
    const char links[] =
        "d=$PWD; m=" SCRATCH "hub/models--Org--toy; s=$m/snapshots/"
        "0123456789012345678901234567890123456789; mkdir $s && for f in " TOY "/*; do "
        "n=$(basename $f); cp $f $m/blobs/$n && ln -s ../../blobs/$n $s/$n; done";
    assert_int_equal(system(links), 0); /* NOLINT(cert-env33-c): a command of the test's own */
    setenv("HF_HUB_CACHE", SCRATCH "hub", 1);
    result a = run(str_of(good), "ask", "--model", "Org/toy", NULL);
    all_well(&a);
    result b = run(str_of(good), "ask", "--model", TOY, NULL);
    assert_string_equal(a.out.p, b.out.p);
    done(&a);
    done(&b);
    a = run(str_of(good), "ask", "--model", "Org/none", NULL);
    failed(&a, 2, "Org/none");
    unsetenv("HF_HUB_CACHE");
}

static void info_describes_a_checkpoint(void **state) {
    (void)state;
    result r = run(STR(""), "info", TOY, NULL);
    all_well(&r);
    assert_true(r.out.n > 0);
    done(&r);
    r = run(STR(""), "info", "--json", TOY, NULL);
    all_well(&r);
    arena mem = {0};
    const json *v = NULL;
    clef_error err = {0};
    assert_int_equal(json_parse(&v, (str){r.out.p, r.out.n}, "info", &(json_limits){0}, &mem, &err),
                     CLEF_OK);
    assert_int_equal(v->kind, JSON_OBJECT);
    arena_free(&mem);
    done(&r);
}

static double number_at(const json *v, const char *outer, const char *inner) {
    double x = -1;
    if (!json_double(&x, json_get(json_get(v, str_of(outer)), str_of(inner))))
        fail_msg("no number %s.%s", outer, inner);
    return x;
}

static void bench_prints_every_member_as_json(void **state) {
    (void)state;
    result r =
        run(STR(""), "bench", "--model", TOY, "--tokens", "256", "--repeats", "2", "--json", NULL);
    all_well(&r);
    arena mem = {0};
    const json *v = NULL;
    clef_error err = {0};
    assert_int_equal(
        json_parse(&v, (str){r.out.p, r.out.n}, "bench", &(json_limits){0}, &mem, &err), CLEF_OK);
    assert_true(number_at(v, "ceilings", "fma_gflops") > 0);
    assert_true(number_at(v, "ceilings", "read_gbps") > 0);
    assert_true(number_at(v, "prefill", "tokens") >= 256);
    assert_true(number_at(v, "prefill", "tokens_per_s") > 0);
    static const char *const parts[] = {"linears", "attention", "delta", "head", "other"};
    double share = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json *part = json_get(v, STR("parts"));
        share += number_at(part, parts[i], "share");
        assert_true(number_at(part, parts[i], "gflops") >= 0);
    }
    assert_true(share > 0.9 && share < 1.1); /* medians of parts need not add up exactly */
    assert_non_null(json_get(v, STR("machine")));
    assert_non_null(json_get(v, STR("kernels")));
    assert_non_null(json_get(v, STR("threads")));
    assert_non_null(json_get(v, STR("load_average")));
    arena_free(&mem);
    done(&r);
}

static void bench_prints_a_table(void **state) {
    (void)state;
    result r = run(STR(""), "bench", TOY, "--tokens", "256", "--repeats", "1", NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, "\nlinears "));
    assert_non_null(strstr(r.out.p, " tokens/s\n"));
    done(&r);
}

static void the_gate_prints_a_table_and_writes_a_report(void **state) {
    (void)state;
    result r = run(STR(""), "gate", "--fixtures", TESTDATA "gate/toy-r2-chosen.json",
                   TESTDATA "gate/toy-r2-heldout.json", "--red", "--report", SCRATCH "gate.json",
                   "--model", TOY, NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, "13 runs, 52 questions"));
    assert_non_null(strstr(r.out.p, "\ngate: passed\n"));
    done(&r);
    buf report = read_file(SCRATCH "gate.json");
    arena mem = {0};
    const json *v = NULL;
    clef_error err = {0};
    assert_int_equal(
        json_parse(&v, (str){report.p, report.n}, "report", &(json_limits){0}, &mem, &err),
        CLEF_OK);
    assert_int_equal(json_get(v, STR("runs"))->n, 13);
    assert_int_equal(json_get(v, STR("holds"))->kind, JSON_TRUE);
    arena_free(&mem);
    buf_free(&report);
}

static void a_gate_that_refuses_ends_with_2_and_still_prints(void **state) {
    (void)state;
    result r = run(STR(""), "gate", TOY, "--fixtures", TESTDATA "gate/toy-r2-chosen.json",
                   "--max-dp", "0.000000001", "--report", SCRATCH "gate.json", NULL);
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.out.p, "\n  max_dp   FAILS"));
    assert_non_null(strstr(r.out.p, "\ngate: FAILED\n"));
    assert_string_equal(r.err.p, "clef: " TOY ": the gate refuses it\n");
    done(&r);
    buf report = read_file(SCRATCH "gate.json");
    assert_non_null(strstr(report.p, "\"holds\": false}\n"));
    buf_free(&report);
    r = run(STR(""), "gate", TOY, "--fixtures", TESTDATA "golden/rope.json", NULL);
    failed(&r, 2, "rope.json: schema: missing");
}

static void two_checkpoints_are_compared_on_requests(void **state) {
    (void)state;
    write_file(SCRATCH "request.json", str_of(good));
    result r = run(STR(""), "gate", TOY, "--against", TESTDATA "toy-explicit", "--requests",
                   SCRATCH "request.json", SCRATCH "request.json", NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, "2 requests, "));
    assert_non_null(strstr(r.out.p, "\nchoice "));
    assert_non_null(strstr(r.out.p, "\nall "));
    done(&r);
}

/* What it writes is convert_test.c's concern. */
static void convert_makes_a_folder_that_answers_and_does_not_replace_it(void **state) {
    (void)state;
    /* NOLINTNEXTLINE(cert-env33-c): a command of the test's own. */
    assert_int_equal(system("rm -rf " SCRATCH "int8 " SCRATCH "int4 " SCRATCH "int8.partial"), 0);
    result r = run(STR(""), "convert", TOY, "--out", SCRATCH "int8", "--layers-16bit", "0-3",
                   "--jobs", "2", NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, SCRATCH "int8: 0.00 GB of 0.00; "));
    done(&r);
    r = run(str_of(good), "ask", SCRATCH "int8", NULL);
    all_well(&r);
    done(&r);
    r = run(STR(""), "convert", TOY, "--out", SCRATCH "int8", NULL);
    failed(&r, 2, "int8: exists already: name a new folder, or remove it");
    r = run(STR(""), "convert", TOY, NULL);
    failed(&r, 2, "no folder to make is given; usage: clef convert --model DIR --out DIR");
    r = run(STR(""), "convert", TESTDATA "gate/toy-blocks", "--out", SCRATCH "int4", "--format",
            "int4", NULL);
    all_well(&r);
    assert_non_null(strstr(r.out.p, "62 matrices converted, 4.50 bits a weight in 62 linears"));
    assert_non_null(strstr(r.out.p, "\nint4 in all layers changes answers"));
    done(&r);
    r = run(STR(""), "convert", TOY, "--out", SCRATCH "none", "--format", "int5", NULL);
    failed(&r, 2, "--format: 'int5' is not int8mix, int8, int6, int4mix or int4");
    r = run(STR(""), "convert", TOY, "--out", SCRATCH "none", "--layers-16bit", "8", NULL);
    failed(&r, 2, "layers-16bit: '8' is no list of layers");
    assert_int_equal(count_files("none"), 0);
    /* NOLINTNEXTLINE(cert-env33-c): a command of the test's own. */
    assert_int_equal(system("rm -rf " SCRATCH "int8 " SCRATCH "int4"), 0);
}

static void help_and_version_go_to_standard_output(void **state) {
    (void)state;
    result r = run(STR(""), "--version", NULL);
    all_well(&r);
    assert_string_equal(r.out.p, "clef " CLEF_VERSION "\n");
    done(&r);
    r = run(STR(""), "ask", "--help", NULL);
    all_well(&r);
    result s = run(STR(""), "help", "ask", NULL);
    assert_string_equal(r.out.p, s.out.p);
    done(&r);
    done(&s);
    r = run(STR(""), "help", "--man", NULL);
    all_well(&r);
    assert_memory_equal(r.out.p, ".TH CLEF 1 ", 11);
    done(&r);
}

static void a_wrong_command_line_gives_one_line_and_status_2(void **state) {
    (void)state;
    result r = run(STR(""), "ask", TOY, "--thread=2", NULL);
    failed(&r, 2, "clef: unknown option '--thread', did you mean '--threads'?\n");
    r = run(STR(""), NULL);
    failed(&r, 2, "no command");
    r = run(STR(""), "ask", "\x1b[2J\xff", "x", NULL);
    failed(&r, 2, "\\x1b[2J\\xff");
}

static int make_scratch(void **state) {
    (void)state;
    /* A shell ignores it for work in the background, and the program would go along with that. */
    signal(SIGINT, SIG_DFL);
    unsetenv("LC_ALL");
    setenv("LC_CTYPE", "C", 1); /* bars of '#': a column is a byte */
    /* NOLINTNEXTLINE(cert-env33-c): a command of the test's own. */
    if (system("rm -rf " SCRATCH " && mkdir -p " SCRATCH) != 0) return -1;
    write_file(SCRATCH "request.json", str_of(good));
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ask_prints_the_recorded_answers_of_the_reference),
        cmocka_unit_test(encode_prints_the_recorded_ids_and_spans),
        cmocka_unit_test(encode_needs_no_weights),
        cmocka_unit_test(threads_kernels_and_chunks_leave_the_answer_alone),
        cmocka_unit_test(the_request_may_come_from_a_file_a_dash_or_a_pipe),
        cmocka_unit_test(logits_go_to_standard_error_and_leave_the_answer_alone),
        cmocka_unit_test(a_record_too_long_is_refused_with_both_numbers_or_cut),
        cmocka_unit_test(control_spellings_follow_the_option),
        cmocka_unit_test(pretty_draws_a_bar_for_every_option),
        cmocka_unit_test(a_hostile_id_cannot_steer_the_terminal),
        cmocka_unit_test(pretty_on_a_terminal_has_colour_and_its_width),
        cmocka_unit_test(progress_shows_a_bar_and_a_signal_stops_between_chunks),
        cmocka_unit_test(progress_is_silent_when_standard_error_is_no_terminal),
        cmocka_unit_test(an_interrupt_while_reading_ends_with_130),
        cmocka_unit_test(a_lost_page_ends_with_one_line),
        cmocka_unit_test(an_interrupt_that_the_parent_ignores_is_ignored),
        cmocka_unit_test(an_interrupt_ends_the_wait_for_a_pipe_to_open),
        cmocka_unit_test(out_replaces_a_file_whole_and_keeps_its_mode),
        cmocka_unit_test(out_may_have_the_longest_name_there_is),
        cmocka_unit_test(out_follows_a_link_to_its_file),
        cmocka_unit_test(a_failure_leaves_the_old_file_alone),
        cmocka_unit_test(an_impossible_out_is_refused),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(a_limit_of_file_sizes_is_an_error_and_no_signal),
        cmocka_unit_test(a_closed_pipe_is_an_error_and_no_signal),
        cmocka_unit_test(closed_standard_descriptors_are_errors),
        cmocka_unit_test(a_request_beyond_64_mib_is_refused),
        cmocka_unit_test(a_missing_request_file_is_named),
        cmocka_unit_test(a_bad_request_gives_one_line_and_status_2),
        cmocka_unit_test(a_picture_from_a_file_is_answered_as_one_in_the_request_is),
        cmocka_unit_test(pictures_are_shown_in_the_order_of_the_options),
        cmocka_unit_test(a_picture_that_cannot_be_read_gives_one_line_and_status_2),
        cmocka_unit_test(deep_nesting_is_refused_not_a_crash),
        cmocka_unit_test(a_bad_model_is_named),
        cmocka_unit_test(a_checkpoint_without_a_head_says_so),
        cmocka_unit_test(a_name_is_found_in_the_hub_cache),
        cmocka_unit_test(info_describes_a_checkpoint),
        cmocka_unit_test(bench_prints_every_member_as_json),
        cmocka_unit_test(bench_prints_a_table),
        cmocka_unit_test(the_gate_prints_a_table_and_writes_a_report),
        cmocka_unit_test(a_gate_that_refuses_ends_with_2_and_still_prints),
        cmocka_unit_test(two_checkpoints_are_compared_on_requests),
        cmocka_unit_test(convert_makes_a_folder_that_answers_and_does_not_replace_it),
        cmocka_unit_test(help_and_version_go_to_standard_output),
        cmocka_unit_test(a_wrong_command_line_gives_one_line_and_status_2),
    };
    return cmocka_run_group_tests(tests, make_scratch, NULL);
}
