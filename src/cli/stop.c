/* stop.c - the one piece of mutable global state of the program: a signal handler has nowhere else
 * to leave its word. Handlers are installed without SA_RESTART, so that a blocked read returns. */
#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught != 0) _exit(128 + number);
    caught = number;
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
