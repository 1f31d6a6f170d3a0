/* password.c - the line is read byte by byte, so that nothing behind it is taken from a pipe, and
 * the terminal shows again what is typed whatever ends the reading. */
#include "cli/password.h"

#include <errno.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/crypto.h"
#include "cli/io.h"
#include "cli/stop.h"

enum { MAX_PASSWORD = 1024 };

static clef_status read_line(buf *out, clef_error *err) {
    for (size_t n = 0;;) {
        char c = 0;
        const ssize_t got = read(STDIN_FILENO, &c, 1);
        if (got < 0 && errno == EINTR) {
            TRY(stop_status(err));
            continue;
        }
        if (got < 0) return clef_fail(err, CLEF_ERR_IO, "standard input: %s", strerror(errno));
        if (got == 0 && n == 0)
            return clef_fail(err, CLEF_ERR_INPUT, "standard input: it ends, wanted a password");
        if (got == 0 || c == '\n') return buf_status(out, err);
        if (++n > MAX_PASSWORD)
            return clef_fail(err, CLEF_ERR_LIMIT, "a password has at most %d bytes", MAX_PASSWORD);
        buf_add_char(out, c);
    }
}

static clef_status ask(const char *prompt, buf *out, clef_error *err) {
    struct termios seen, unseen;
    const bool terminal = tcgetattr(STDIN_FILENO, &seen) == 0;
    if (terminal) {
        TRY(io_write_error(str_of(prompt), err));
        unseen = seen;
        unseen.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &unseen);
    }
    const clef_status s = read_line(out, err);
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &seen);
        io_write_error(STR("\n"), NULL);
    }
    return s;
}

clef_status password_ask(void *user, buf *out, clef_error *err) {
    (void)user;
    return ask("Password of the secret key: ", out, err);
}

clef_status password_new(buf *out, clef_error *err) {
    buf again = {0};
    clef_status s = ask("Password for the new key: ", out, err);
    if (s == CLEF_OK && out->n == 0)
        s = clef_fail(err, CLEF_ERR_INPUT, "an empty password; --no-password makes a key without");
    if (s == CLEF_OK) s = ask("The same again: ", &again, err);
    if (s == CLEF_OK && !str_equal((str){out->p, out->n}, (str){again.p, again.n}))
        s = clef_fail(err, CLEF_ERR_INPUT, "the two passwords differ");
    if (again.p != NULL) wipe(again.p, again.cap);
    buf_free(&again);
    return s;
}
