/* get_cli_test.c - clef get from outside: the environment it reads, what it prints where, how it
 * ends, and that its folder opens. The servers are tests/fetch_rig.py. */
#include "tests/program.h"
#include "tests/rig.h"

#include <signal.h>
#include <time.h>

#include "base/arena.h"
#include "text/json.h"

static rig servers;
static folder home;        /* of one test: the hub cache, tokens, what the program printed */
static char out_dir[1100]; /* a folder in it to fetch into */

static int start_servers(void **state) {
    (void)state;
    servers = rig_start();
    static const char *const unset[] = {"HF_TOKEN",       "HF_TOKEN_PATH",
                                        "HF_HOME",        "XDG_CACHE_HOME",
                                        "HF_HUB_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    setenv("HF_ENDPOINT", servers.hub, 1);
    setenv("SSL_CERT_FILE", servers.ca, 1);
    return 0;
}

static int stop_servers(void **state) {
    (void)state;
    rig_stop(&servers);
    return 0;
}

static int begin(void **state) {
    (void)state;
    home = folder_new();
    snprintf(out_dir, sizeof out_dir, "%s", folder_path(&home, "out"));
    setenv("HOME", home.path, 1);
    setenv("HF_HUB_CACHE", folder_path(&home, "hub"), 1);
    rig_forget(&servers);
    return 0;
}

static int end(void **state) {
    (void)state;
    folder_remove(home.path);
    return 0;
}

typedef struct {
    int status;
    buf out, err;
} result;

static int open_out(const char *name) {
    const int fd = open(folder_path(&home, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    return fd;
}

static void read_out(buf *out, const char *name) {
    assert_int_equal(file_read(out, folder_path(&home, name), 1 << 24, NULL), CLEF_OK);
    buf_add(out, "", 0);
}

/* Runs the program with the words up to a NULL; free with done(). */
static result run(const char *const *words) {
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out = open_out("stdout"),
              err = open_out("stderr");
    result r = {.status = program_wait(program_start(in, out, err, words))};
    close(in);
    close(out);
    close(err);
    read_out(&r.out, "stdout");
    read_out(&r.err, "stderr");
    return r;
}
#define RUN(...) run((const char *const[]){PROGRAM, __VA_ARGS__, NULL})

static void done(result *r) {
    buf_free(&r->out);
    buf_free(&r->err);
}

static void ended(const result *r, int status, const char *words) {
    if (r->status != status || strstr(r->err.p, words) == NULL)
        fail_msg("status %d: %s\nwanted %d: %s", r->status, r->err.p, status, words);
}

static void a_fetched_model_answers_by_its_name(void **state) {
    (void)state;
    result r = RUN("ask", "Org/Toy", "--request", "examples/request.json");
    ended(&r, 2, "clef: model 'Org/Toy': neither a folder nor in the hub cache (looked for ");
    assert_non_null(strstr(r.err.p, "; 'clef get Org/Toy' fetches it\n"));
    assert_true(rig_count(&servers, "hub", "GET") == 0); /* and fetches nothing itself */
    done(&r);
    r = RUN("info", "Cloudflare/clef-flash");
    ended(&r, 2, "; 'clef get Cloudflare/clef-flash' fetches it, 19.1 GB\n");
    done(&r);

    r = RUN("get", "Org/Toy");
    ended(&r, 0, "model.safetensors  809.8 kB  fetched\n");
    char folder_line[1200];
    snprintf(folder_line, sizeof folder_line, "%s/snapshots/" RIG_COMMIT "\n",
             folder_path(&home, "hub/models--Org--Toy"));
    assert_string_equal(r.out.p, folder_line);
    assert_null(strchr(r.err.p, '\x1b')); /* no terminal, no picture */
    done(&r);
    result by_name = RUN("ask", "Org/Toy", "--request", "examples/request.json");
    ended(&by_name, 0, "");
    const char *path = RIG_MODEL;
    result by_path = RUN("ask", path, "--request", "examples/request.json");
    assert_string_equal(by_name.out.p, by_path.out.p);
    done(&by_name);
    done(&by_path);
    r = RUN("get", "Org/Toy");
    ended(&r, 0, "model.safetensors  809.8 kB  there already\n");
    done(&r);
}

static void json_is_a_line_for_every_event(void **state) {
    (void)state;
    result r = RUN("get", "Org/Toy", "--json", "--dir", out_dir);
    ended(&r, 0, "");
    assert_int_equal(r.err.n, 0);
    size_t n_files = 0, n_lines = 0;
    for (char *line = r.out.p, *next; *line != '\0'; line = next) {
        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = '\0';
        arena mem = {0};
        const json *v = NULL;
        clef_error err = {0};
        const json_limits limits = {0};
        if (json_parse(&v, str_of(line), "line", &limits, &mem, &err) != CLEF_OK)
            fail_msg("%s: %s", line, err.text);
        const str event = json_get(v, STR("event"))->text;
        n_files += str_equal(event, STR("file"));
        if (n_lines == 0) assert_true(str_equal(event, STR("plan")));
        if (*next == '\0') {
            assert_true(str_equal(event, STR("done")));
            assert_true(str_equal(json_get(v, STR("fetched_bytes"))->text, STR("1182474")));
            assert_true(str_equal(json_get(v, STR("commit"))->text, STR(RIG_COMMIT)));
        }
        n_lines++;
        arena_free(&mem);
    }
    assert_int_equal(n_files, 6);
    done(&r);
}

static void the_token_comes_from_where_the_hub_s_own_program_looks(void **state) {
    (void)state;
    result r = RUN("get", "Org/Gated", "--include", "config.json");
    ended(&r, 2, "a gated or private model needs HF_TOKEN");
    done(&r);
    folder_write(&home, "mine", STR("  hf_right\n"));
    setenv("HF_TOKEN_PATH", folder_path(&home, "mine"), 1);
    r = RUN("get", "Org/Gated", "--include", "config.json");
    ended(&r, 0, "fetched");
    done(&r);
    setenv("HF_TOKEN", "hf_wrong", 1); /* goes before the file */
    r = RUN("get", "Org/Gated", "--include", "config.json");
    ended(&r, 2, "answered 401");
    assert_null(strstr(r.err.p, "hf_wrong"));
    done(&r);
    unsetenv("HF_TOKEN");
    setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
    rig_forget(&servers);
    r = RUN("get", "Org/Gated", "--include", "config.json");
    ended(&r, 2, "answered 401");
    assert_true(rig_count(&servers, "hub", "Bearer") == 0);
    done(&r);
    unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    unsetenv("HF_TOKEN_PATH");
}

static void offline_means_offline(void **state) {
    (void)state;
    setenv("HF_HUB_OFFLINE", "1", 1);
    result r = RUN("get", "Org/Toy");
    ended(&r, 2, "HF_HUB_OFFLINE is set: nothing is fetched");
    assert_true(rig_count(&servers, "hub", "GET") == 0);
    done(&r);
    unsetenv("HF_HUB_OFFLINE");
}

/* The mirror gives 32 kB at once and then 32 kB a second. */
static void an_interrupt_leaves_what_the_same_command_goes_on_from(void **state) {
    (void)state;
    char slow[80], part[1100];
    snprintf(slow, sizeof slow, "%s/slow/", servers.mirror);
    snprintf(part, sizeof part, "%s", folder_path(&home, "out/model.safetensors.part"));
    const char *const words[] = {PROGRAM, "get",      "Org/Toy", "--dir",
                                 out_dir, "--source", slow,      NULL};
    const int err = open_out("stderr");
    const pid_t pid = program_start(-1, err, err, words);
    struct stat st = {0};
    for (int i = 0; i < 6000 && (stat(part, &st) != 0 || st.st_size == 0); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(st.st_size > 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(program_wait(pid), 130);
    close(err);
    buf said = {0};
    read_out(&said, "stderr");
    assert_non_null(
        strstr(said.p, "clef: stopped by a signal; the same command goes on from here\n"));
    buf_free(&said);
    assert_int_equal(stat(part, &st), 0);
    result r = RUN("get", "Org/Toy", "--dir", out_dir);
    ended(&r, 0, "model.safetensors  809.8 kB  fetched");
    done(&r);
    char range[96];
    snprintf(range, sizeof range, "/blobs/model.safetensors\t-\tbytes=%lld-\t-\t206",
             (long long)st.st_size);
    buf log = rig_log(&servers, "content");
    if (strstr(log.p, range) == NULL) fail_msg("no '%s' in '%s'", range, log.p);
    buf_free(&log);
    assert_true(
        rig_same(folder_path(&home, "out/model.safetensors"), RIG_MODEL "/model.safetensors"));
}

static void a_terminal_shows_every_file_and_all_of_them(void **state) {
    (void)state;
    char slow[80];
    snprintf(slow, sizeof slow, "%s/slow/", servers.mirror);
    setenv("TERM", "xterm", 1);
    int master = -1;
    const int slave = program_terminal(&master);
    const char *const words[] = {PROGRAM, "get",      "Org/Toy", "--dir",
                                 out_dir, "--source", slow,      NULL};
    const pid_t pid = program_start(slave, slave, slave, words);
    close(slave);
    buf seen = {0};
    assert_true(program_read_until(&seen, master, "s left"));
    assert_int_equal(kill(pid, SIGTERM), 0);
    program_read_until(&seen, master, NULL);
    assert_int_equal(program_wait(pid), 143);
    close(master);
    const char *text = seen.p == NULL ? "" : seen.p;
    assert_non_null(strstr(text, "config.json  2.2 kB  fetched\r\n"));
    assert_non_null(strstr(text, " of 809.8 kB"));
    assert_non_null(strstr(text, "all files"));
    assert_non_null(strstr(text, " MB/s, "));
    const char *wiped = strstr(text, "\r\x1b[Jclef: stopped"); /* the picture goes first */
    assert_non_null(wiped);
    size_t columns = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\x1b')
            c += strcspn(c, "AJK"); /* what steers the terminal takes no room */
        else if (((unsigned char)*c & 0xC0) != 0x80)
            columns = *c == '\n' || *c == '\r' ? 0 : columns + 1;
        if (columns > 60 && c < wiped) fail_msg("a line of the picture is too long: %zu", columns);
    }
    buf_free(&seen);
}

static void a_full_standard_output_ends_the_run(void **state) {
    (void)state;
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC), err = open_out("stderr");
    assert_true(full >= 0);
    const char *const words[] = {PROGRAM, "get", "Org/Toy", "--json", "--dir", out_dir, NULL};
    assert_int_equal(program_wait(program_start(-1, full, err, words)), 2);
    close(full);
    close(err);
    buf said = {0};
    read_out(&said, "stderr");
    assert_non_null(strstr(said.p, "clef: standard output: No space left on device\n"));
    buf_free(&said);
}

static void what_is_not_the_model_of_a_hub_is_refused(void **state) {
    (void)state;
    result r = RUN("get", "Toy");
    ended(&r, 2, "clef: 'Toy': wanted a name of the form Org/Name\n");
    done(&r);
    r = RUN("get");
    ended(&r, 2, "neither a model nor a manifest is given; usage: clef get");
    done(&r);
    r = RUN("get", "m.json", "--manifest", "n.json");
    ended(&r, 2, "two manifests are given: 'm.json' and 'n.json'");
    done(&r);
    r = RUN("get", "Org/Toy", "--all", "--include", "*.json");
    ended(&r, 2, "--all and --include exclude each other");
    done(&r);
    r = RUN("get", "nowhere.json");
    ended(&r, 2, "nowhere.json: No such file or directory");
    done(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fetched_model_answers_by_its_name, begin, end),
        cmocka_unit_test_setup_teardown(json_is_a_line_for_every_event, begin, end),
        cmocka_unit_test_setup_teardown(the_token_comes_from_where_the_hub_s_own_program_looks,
                                        begin, end),
        cmocka_unit_test_setup_teardown(offline_means_offline, begin, end),
        cmocka_unit_test_setup_teardown(an_interrupt_leaves_what_the_same_command_goes_on_from,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_terminal_shows_every_file_and_all_of_them, begin, end),
        cmocka_unit_test_setup_teardown(a_full_standard_output_ends_the_run, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_the_model_of_a_hub_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
