/* stop.c - the one piece of mutable global state of the program: a signal handler has nowhere else
 * to leave its word. Handlers are installed without SA_RESTART, so that a blocked read returns. */
#include "cli/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught != 0) _exit(128 + number);
    caught = number;
}

/* A page of a mapped file is gone: somebody cut the file short after it was opened. Nothing can be
 * unwound here, and the program leaves nothing behind that would have to be. */
static void on_lost_page(int number) {
    static const char line[] =
        "clef: a model file shrank or could not be read while it was in use\n";
    static atomic_flag told = ATOMIC_FLAG_INIT;
    (void)number;
    while (atomic_flag_test_and_set(&told)) pause(); /* another thread has told already */
    const ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)written;
    _exit(2);
}

/* A signal that the parent made the program ignore, as nohup and shells do for work in the
 * background, stays ignored. */
static void watch(int number) {
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
}

void stop_watch(void) {
    watch(SIGINT);
    watch(SIGTERM);
    struct sigaction lost = {.sa_handler = on_lost_page};
    sigemptyset(&lost.sa_mask);
    sigaction(SIGBUS, &lost, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a file size limit is an error of write like a full disk */
}

int stop_signal(void) {
    return caught;
}

clef_status stop_status(clef_error *err) {
    if (caught == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_CANCELLED, "stopped by %s",
                     caught == SIGINT ? "an interrupt" : "a request to terminate");
}
