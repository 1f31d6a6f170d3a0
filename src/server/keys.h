/* keys.h - the API keys that open the server, from the command line and a file. */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

#include "base/status.h"
#include "base/str.h"

typedef struct api_keys api_keys;

/* Reads the keys: `key` (may be NULL) and the lines of the file at `path` (may be NULL); empty
 * lines and those that begin with '#' are no keys. CLEF_ERR_INPUT for a key that no header can
 * carry, and for a file that holds none. Close with keys_close. */
clef_status keys_open(api_keys **out, const char *key, const char *path, clef_error *err);
void keys_close(api_keys *k);

/* Reads the file again; on failure the old keys stay. */
clef_status keys_reload(api_keys *k, clef_error *err);

bool keys_needed(api_keys *k);

/* Which key was presented: a number from 1, the same for the same key while the program runs; 0 for
 * none of them. The time taken does not depend on what the keys hold or on the length of the one
 * presented beyond reading it once. */
size_t keys_find(api_keys *k, str presented);

#endif
