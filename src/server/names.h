/* names.h - which model names this server answers to. */
#ifndef SERVER_NAMES_H
#define SERVER_NAMES_H

#include "base/str.h"

typedef struct {
    const char *served; /* the name in answers */
    const char *const *aliases;
    size_t n_aliases;
    bool any; /* whatever is asked for */
} model_names;

/* Whether `name`, blanks around it aside and without regard to case, is one of the names. */
bool names_match(const model_names *n, str name);

/* The names in a list for clients: the served one, the aliases, jev-latest; NULL past the end. */
const char *names_list(const model_names *n, size_t i);

#endif
