/* password.h - passwords from standard input, unseen when it is a terminal. */
#ifndef CLI_PASSWORD_H
#define CLI_PASSWORD_H

#include "base/buf.h"

/* Appends one line of standard input without its end; a minisign_password, `user` is not used. */
clef_status password_ask(void *user, buf *out, clef_error *err);

/* Asks twice, and refuses two that differ or an empty one. */
clef_status password_new(buf *out, clef_error *err);

#endif
