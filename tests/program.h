/* program.h - the built clef, started by a test as a shell would, on files or on a terminal. */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

/* In parentheses: two literals side by side in a list of words look like a forgotten comma. */
#define PROGRAM (BUILD_DIR "clef")

enum { PROGRAM_MAX_WORDS = 24 };

/* The exit status, or 128 + the signal that ended it. */
static inline int program_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Starts words[0] with the given descriptors; -1 closes one. */
static inline pid_t program_start(int in, int out, int err, const char *const *words) {
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    const int from[] = {in, out, err};
    for (int fd = 0; fd < 3; fd++) {
        if (from[fd] < 0)
            close(fd);
        else if (dup2(from[fd], fd) < 0)
            _exit(99);
    }
    char *copy[PROGRAM_MAX_WORDS] = {0}; /* execv does not promise to leave the words alone */
    for (int i = 0; words[i] != NULL; i++) copy[i] = strdup(words[i]);
    execv(copy[0], copy);
    _exit(98);
}

/* A terminal of 60 columns: what the program writes on it can be read from *master. */
static inline int program_terminal(int *master) {
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    if (*master < 0)
        skip(); /* a machine without pseudo-terminals; the run says how many it skipped */
    assert_int_equal(grantpt(*master), 0);
    assert_int_equal(unlockpt(*master), 0);
    const int slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    const struct winsize size = {.ws_row = 24, .ws_col = 60};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    return slave;
}

/* Reads from the terminal until the words have come or nobody writes any more. */
static inline bool program_read_until(buf *seen, int master, const char *words) {
    for (;;) {
        if (words != NULL && seen->p != NULL && strstr(seen->p, words) != NULL) return true;
        char block[4096];
        const ssize_t n = read(master, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return words == NULL;
        buf_add(seen, block, (size_t)n);
    }
}

#endif
