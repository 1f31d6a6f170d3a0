/* fetch_long_test.c - what takes long or needs the hub's own Python package (build/hub-py, which
 * `make test-slow` installs): fifty kills, and one cache for both programs. */
#include "tests/program.h"
#include "tests/rig.h"

#include <signal.h>
#include <time.h>

static rig servers;
static folder home;
static char out_dir[1100], cache[1100];

static int begin(void **state) {
    (void)state;
    servers = rig_start();
    home = folder_new();
    snprintf(out_dir, sizeof out_dir, "%s", folder_path(&home, "out"));
    snprintf(cache, sizeof cache, "%s", folder_path(&home, "hub"));
    setenv("HF_ENDPOINT", servers.hub, 1);
    setenv("SSL_CERT_FILE", servers.ca, 1);
    setenv("HF_HUB_CACHE", cache, 1);
    setenv("HOME", home.path, 1);
    setenv("PYTHONPATH", "build/hub-py", 1);
    unsetenv("HF_TOKEN");
    return 0;
}

static int end(void **state) {
    (void)state;
    rig_stop(&servers);
    folder_remove(home.path);
    return 0;
}

/* Bytes of the files below out_dir but for the notes of the parts; complete ones may be in it. */
static uint64_t n_bytes;
static int add_bytes(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)at;
    if (kind == FTW_F && strstr(path, ".note") == NULL) n_bytes += (uint64_t)st->st_size;
    return 0;
}

static uint64_t bytes_there(void) {
    n_bytes = 0;
    nftw(out_dir, add_bytes, 8, FTW_PHYS); /* fails while there is no folder */
    return n_bytes;
}

static pid_t start(const char *const *words, const char *out) {
    const int fd = open(folder_path(&home, out), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    const pid_t pid = program_start(-1, fd, fd, words);
    close(fd);
    return pid;
}

/* Runs to the end; what was printed, for buf_free. */
static buf finish(const char *const *words) {
    const int status = program_wait(start(words, "printed"));
    buf text = {0};
    assert_int_equal(file_read(&text, folder_path(&home, "printed"), 1 << 20, NULL), CLEF_OK);
    buf_add(&text, "", 0);
    if (status != 0) fail_msg("%s: status %d: %s", words[0], status, text.p);
    return text;
}

static void fifty_kills_end_in_the_same_folder(void **state) {
    (void)state;
    enum { KILLS = 50 };
    /* The server sends the first 32 kB of every answer at once, so that a run which is to be killed
     * near the end may get there first: the last place is well before it. */
    const uint64_t size = 1182474, stretch = size * 4 / 5 / KILLS;
    char slow[80];
    snprintf(slow, sizeof slow, "%s/slow/", servers.mirror);
    const char *const words[] = {PROGRAM,  "get", "Org/Toy",  "--dir", out_dir,
                                 "--jobs", "2",   "--source", slow,    NULL};
    uint64_t random = 88172645463325252u; /* xorshift: the same places in every run of the test */
    unsigned killed = 0;
    for (uint64_t i = 0; i < KILLS; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        /* One place in each of fifty stretches of the way. */
        const uint64_t place = stretch * i + random % stretch;
        const pid_t pid = start(words, "printed");
        int status = 0;
        while (bytes_there() < place && waitpid(pid, &status, WNOHANG) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        kill(pid, SIGKILL);
        killed += program_wait(pid) == 128 + SIGKILL;
    }
    assert_int_equal(killed, KILLS);
    assert_true(bytes_there() < size);
    const char *const rest[] = {PROGRAM, "get", "Org/Toy", "--dir", out_dir, NULL};
    buf text = finish(rest);
    buf_free(&text);
    char command[2400];
    snprintf(command, sizeof command,
             "diff -r %s %s && test $(find %s -type f | wc -l) -eq $(find %s -type f | wc -l)",
             RIG_MODEL, out_dir, RIG_MODEL, out_dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a command of the test's own */
    /* Every run but the first went on where the one before it was killed. */
    assert_true(rig_count(&servers, "mirror", "\t206") >= KILLS / 2);
}

static void a_cache_of_ours_is_one_of_the_hub_s_package(void **state) {
    (void)state;
    const char *const get[] = {PROGRAM, "get", "Org/Toy", NULL};
    buf ours = finish(get);
    const char *const opened[] = {"/usr/bin/env", "python3", "tests/hub_package.py",
                                  "open",         cache,     NULL};
    buf theirs = finish(opened);
    const char *last = strrchr(ours.p, '/'); /* the files are named before the folder */
    assert_non_null(last);
    assert_non_null(strstr(theirs.p, last));
    /* Online it finds nothing to fetch but the files that the engine does not need. */
    rig_forget(&servers);
    buf_free(&theirs);
    const char *const fetched[] = {"/usr/bin/env", "python3", "tests/hub_package.py",
                                   "fetch",        cache,     NULL};
    theirs = finish(fetched);
    assert_true(rig_count(&servers, "content", "GET") == 0);
    buf_free(&ours);
    buf_free(&theirs);
}

static void a_cache_of_the_hub_s_package_is_one_of_ours(void **state) {
    (void)state;
    const char *const fetched[] = {"/usr/bin/env", "python3", "tests/hub_package.py",
                                   "fetch",        cache,     NULL};
    buf theirs = finish(fetched);
    const char *const info[] = {PROGRAM, "info", "Org/Toy", NULL};
    buf text = finish(info);
    buf_free(&text);
    rig_forget(&servers);
    const char *const get[] = {PROGRAM, "get", "Org/Toy", "--all", NULL};
    text = finish(get);
    assert_null(strstr(text.p, "  fetched\n"));
    assert_true(rig_count(&servers, "content", "GET") == 0);
    buf_free(&text);
    buf_free(&theirs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fifty_kills_end_in_the_same_folder, begin, end),
        cmocka_unit_test_setup_teardown(a_cache_of_ours_is_one_of_the_hub_s_package, begin, end),
        cmocka_unit_test_setup_teardown(a_cache_of_the_hub_s_package_is_one_of_ours, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
