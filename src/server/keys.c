/* keys.c - see keys.h.
 *
 * Keys are kept and compared as SHA-256 digests: all have one length, so that neither the place of
 * the first wrong byte nor the length of a key shows in the time, and every known key is looked at.
 * A key's number has to outlive a reload, because answers are cached under it: a key that was there
 * before keeps its number, and numbers are never used again. */
#include "server/keys.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/digest.h"
#include "base/file.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_KEY_BYTES = 4096 };

typedef struct {
    char hex[DIGEST_HEX];
    size_t number;
} known_key;

typedef struct {
    known_key *keys;
    size_t n, cap;
} key_set;

struct api_keys {
    char *given, *path;   /* NULL: none */
    pthread_mutex_t lock; /* guards what follows */
    key_set now;
    size_t last_number;
};

static clef_status add_key(key_set *set, str key, const char *from, clef_error *err) {
    if (key.n > MAX_KEY_BYTES)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a key of %zu bytes, wanted at most %d", from,
                         key.n, MAX_KEY_BYTES);
    for (size_t i = 0; i < key.n; i++)
        if (key.p[i] <= 0x20 || key.p[i] >= 0x7F)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: a key may hold printable ASCII without blanks only", from);
    known_key *keys = array_grow(set->keys, &set->cap, set->n + 1, sizeof *keys);
    if (keys == NULL) return clef_fail_memory(err);
    set->keys = keys;
    keys[set->n] = (known_key){.number = 0};
    TRY(digest_bytes(keys[set->n].hex, key.p, key.n, err));
    set->n++;
    return CLEF_OK;
}

static clef_status read_file(key_set *set, const char *path, clef_error *err) {
    buf text = {0};
    clef_status s = file_read(&text, path, MAX_FILE_BYTES, err);
    const size_t before = set->n;
    for (size_t at = 0; s == CLEF_OK && at < text.n;) {
        const char *line = text.p + at;
        const char *end = memchr(line, '\n', text.n - at);
        size_t n = end == NULL ? text.n - at : (size_t)(end - line);
        at += n + 1;
        while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
        if (n > 0 && line[0] != '#') s = add_key(set, (str){line, n}, path, err);
    }
    if (s == CLEF_OK && set->n == before)
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: holds no key; wanted one a line", path);
    buf_free(&text);
    return s;
}

static clef_status read_all(key_set *set, const api_keys *k, clef_error *err) {
    if (k->given != NULL) TRY(add_key(set, str_of(k->given), "--api-key", err));
    if (k->path != NULL) TRY(read_file(set, k->path, err));
    return CLEF_OK;
}

clef_status keys_reload(api_keys *k, clef_error *err) {
    key_set next = {0};
    const clef_status s = read_all(&next, k, err);
    if (s != CLEF_OK) {
        free(next.keys);
        return s;
    }
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < next.n; i++) {
        for (size_t j = 0; j < k->now.n; j++)
            if (strcmp(next.keys[i].hex, k->now.keys[j].hex) == 0)
                next.keys[i].number = k->now.keys[j].number;
        if (next.keys[i].number == 0) next.keys[i].number = ++k->last_number;
    }
    free(k->now.keys);
    k->now = next;
    pthread_mutex_unlock(&k->lock);
    return CLEF_OK;
}

clef_status keys_open(api_keys **out, const char *key, const char *path, clef_error *err) {
    api_keys *k = calloc(1, sizeof *k);
    if (k == NULL) return clef_fail_memory(err);
    pthread_mutex_init(&k->lock, NULL);
    k->given = key == NULL ? NULL : strdup(key);
    k->path = path == NULL ? NULL : strdup(path);
    clef_status s = CLEF_OK;
    if ((key != NULL && k->given == NULL) || (path != NULL && k->path == NULL))
        s = clef_fail_memory(err);
    if (s == CLEF_OK) s = keys_reload(k, err);
    if (s != CLEF_OK) {
        keys_close(k);
        return s;
    }
    *out = k;
    return CLEF_OK;
}

void keys_close(api_keys *k) {
    if (k == NULL) return;
    free(k->given);
    free(k->path);
    free(k->now.keys);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

bool keys_needed(api_keys *k) {
    return k->given != NULL || k->path != NULL;
}

size_t keys_find(api_keys *k, str presented) {
    char hex[DIGEST_HEX];
    if (digest_bytes(hex, presented.p, presented.n, NULL) != CLEF_OK) return 0;
    size_t number = 0;
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->now.n; i++) {
        unsigned difference = 0;
        for (size_t b = 0; b < DIGEST_HEX; b++)
            difference |=
                (unsigned)(unsigned char)hex[b] ^ (unsigned)(unsigned char)k->now.keys[i].hex[b];
        if (difference == 0) number = k->now.keys[i].number;
    }
    pthread_mutex_unlock(&k->lock);
    return number;
}
