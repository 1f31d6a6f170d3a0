/* names.c - see names.h. The built-in names are clef-flash's own spellings and those of the hosted
 * service's model, which its SDKs send when no model is named. They stand for the one model that is
 * served, whatever --served-name calls it. Bare "clef" is a larger sibling and is no name
 * here unless --alias makes it one. */
#include "server/names.h"

static const char *const BUILT_IN[] = {
    "clef-flash",    "clef-flash:latest",   "Cloudflare/clef-flash", "@cf/cloudflare/clef-flash",
    "clef-flash-9b", "jev-latest",          "jev-preview",           "jev",
    "typesafe/jev",  "typesafe/jev-latest", "~typesafe/jev-latest",  "typesafe-ai/jev",
};

bool names_match(const model_names *n, str name) {
    name = str_trim(name);
    if (name.n == 0) return false;
    if (n->any || str_same_word(name, n->served)) return true;
    for (size_t i = 0; i < sizeof BUILT_IN / sizeof *BUILT_IN; i++)
        if (str_same_word(name, BUILT_IN[i])) return true;
    for (size_t i = 0; i < n->n_aliases; i++)
        if (str_same_word(name, n->aliases[i])) return true;
    return false;
}

const char *names_list(const model_names *n, size_t i) {
    if (i == 0) return n->served;
    if (i - 1 < n->n_aliases) return n->aliases[i - 1];
    return i - 1 == n->n_aliases ? "jev-latest" : NULL;
}
