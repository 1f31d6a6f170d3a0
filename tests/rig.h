/* rig.h - tests/fetch_rig.py for a test: a hub, its content host, mirrors, and a server that
 * misbehaves, on loopback addresses. */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "tests/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "fetch/http.h"

#define RIG_COMMIT "22b75507981345858dd152fbd9a6f8c0c4068b0a"
#define RIG_MODEL TESTDATA "toy-r2"

typedef struct {
    folder home; /* logs, certificates, published files */
    char ca[300];
    char hub[64], content[64], mirror[64], plain[64], bad[64], stranger[64], misnamed[64], late[64];
    pid_t pid;
    int hold; /* the rig serves until this is closed */
} rig;

static inline void rig_stop(rig *r) {
    close(r->hold);
    int status = 0;
    while (waitpid(r->pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    folder_remove(r->home.path);
}

/* Takes one "NAME VALUE" line; true when it was the last. */
static inline bool rig_line(rig *r, const char *name, const char *value) {
    const struct {
        const char *name;
        char *to;
    } places[] = {{"hub", r->hub},           {"content", r->content}, {"mirror", r->mirror},
                  {"plain", r->plain},       {"bad", r->bad},         {"stranger", r->stranger},
                  {"misnamed", r->misnamed}, {"late", r->late}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].name, name) == 0) snprintf(places[i].to, 64, "%s", value);
    return strcmp(name, "ready") == 0;
}

static inline rig rig_start(void) {
    /* What the tester's shell says about proxies is not for loopback. */
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) unsetenv(proxies[i]);
    rig r = {.home = folder_new()};
    snprintf(r.ca, sizeof r.ca, "%s/ca.pem", r.home.path);
    int in[2], out[2];
    assert_true(pipe(in) == 0 && pipe(out) == 0);
    r.pid = fork();
    assert_true(r.pid >= 0);
    if (r.pid == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0) _exit(99);
        close(in[1]);
        execlp("python3", "python3", "tests/fetch_rig.py", r.home.path, RIG_MODEL, (char *)NULL);
        _exit(98);
    }
    close(in[0]);
    close(out[1]);
    r.hold = in[1];
    fcntl(r.hold, F_SETFD, FD_CLOEXEC); /* or a program that a test starts would keep it open */
    FILE *f = fdopen(out[0], "r");
    assert_non_null(f);
    char name[16], value[64];
    bool ready = false;
    while (!ready && fscanf(f, "%15s %63s", name, value) == 2) ready = rig_line(&r, name, value);
    fclose(f);
    if (!ready) fail_msg("tests/fetch_rig.py did not start");
    return r;
}

/* Waits until nginx, which is one thread, sleeps: only then has it written its lines of all that
 * its clients have seen, because a line follows the answer. */
static inline void rig_settle(const rig *r) {
    char path[64];
    for (bool sleeps = false; !sleeps;) {
        buf pid = {0}, text = {0};
        assert_int_equal(file_read(&pid, folder_path(&r->home, "nginx.pid"), 64, NULL), CLEF_OK);
        buf_add(&pid, "", 0);
        snprintf(path, sizeof path, "/proc/%d/status", (int)strtol(pid.p, NULL, 10));
        assert_int_equal(file_read(&text, path, 1 << 16, NULL), CLEF_OK);
        buf_add(&text, "", 0);
        sleeps = strstr(text.p, "State:\tS") != NULL;
        buf_free(&pid);
        buf_free(&text);
        if (!sleeps) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* The log of a server; free with buf_free. */
static inline buf rig_log(const rig *r, const char *server) {
    char name[32];
    buf text = {0};
    snprintf(name, sizeof name, "%s.log", server);
    rig_settle(r);
    assert_int_equal(file_read(&text, folder_path(&r->home, name), 1 << 24, NULL), CLEF_OK);
    buf_add(&text, "", 0);
    assert_false(text.failed);
    return text;
}

/* How often the words stand in the log. */
static inline size_t rig_count(const rig *r, const char *server, const char *words) {
    buf text = rig_log(r, server);
    size_t n = 0;
    for (const char *at = text.p; at != NULL && (at = strstr(at, words)) != NULL; at++) n++;
    buf_free(&text);
    return n;
}

static inline void rig_forget(const rig *r) {
    static const char *const logs[] = {"hub.log", "content.log", "mirror.log", "bad.log"};
    rig_settle(r);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        assert_int_equal(truncate(folder_path(&r->home, logs[i]), 0), 0);
}

/* Whether both files hold the same bytes. */
static inline bool rig_same(const char *path, const char *other) {
    buf a = {0}, b = {0};
    const bool read = file_read(&a, path, 1 << 24, NULL) == CLEF_OK &&
                      file_read(&b, other, 1 << 24, NULL) == CLEF_OK;
    const bool same = read && str_equal((str){a.p, a.n}, (str){b.p, b.n});
    buf_free(&a);
    buf_free(&b);
    return same;
}

#endif
