/* answers.c - see answers.h.
 *
 * A table of entries by the first digits of their digest, and a list of the finished ones, the one
 * used last in front. An entry is freed when it is neither in the table nor held. Failed entries
 * leave the table at once: whoever waits still reads the reason, and the next request starts anew.
 */
#include "server/answers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"

enum { N_BUCKETS = 4096, ENTRY_OVERHEAD = 512 };

struct kept_answer {
    char key[DIGEST_HEX];
    answer_state state; /* ANSWER_WAIT until it is finished */
    size_t holders;
    bool in_table;
    char *json; /* malloc */
    kept_content content;
    clef_error why;
    double expires;
    kept_answer *chain;         /* in its bucket */
    kept_answer *newer, *older; /* in the list, when finished and in the table */
};

struct answers {
    size_t max_bytes;
    double seconds;
    pthread_mutex_t lock; /* guards all below, and every entry's fields but its text */
    pthread_cond_t changed;
    kept_answer *buckets[N_BUCKETS];
    kept_answer *newest, *oldest;
    size_t bytes, entries;
};

static size_t bucket_of(const char key[DIGEST_HEX]) {
    const char head[5] = {key[0], key[1], key[2], key[3], '\0'};
    return strtoul(head, NULL, 16) % N_BUCKETS;
}

static size_t entry_bytes(const kept_answer *k) {
    return k->content.json_len + ENTRY_OVERHEAD;
}

clef_status answers_open(answers **out, size_t max_bytes, double seconds, clef_error *err) {
    answers *a = calloc(1, sizeof *a);
    if (a == NULL) return clef_fail_memory(err);
    a->max_bytes = max_bytes;
    a->seconds = seconds;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out = a;
    return CLEF_OK;
}

static void free_entry(kept_answer *k) {
    free(k->json);
    free(k);
}

static void unlink_list(answers *a, kept_answer *k) {
    if (k->newer != NULL)
        k->newer->older = k->older;
    else
        a->newest = k->older;
    if (k->older != NULL)
        k->older->newer = k->newer;
    else
        a->oldest = k->newer;
    k->newer = k->older = NULL;
}

static void push_newest(answers *a, kept_answer *k) {
    k->older = a->newest;
    k->newer = NULL;
    if (a->newest != NULL)
        a->newest->newer = k;
    else
        a->oldest = k;
    a->newest = k;
}

/* Takes an entry out of the table. */
static void take_out(answers *a, kept_answer *k) {
    kept_answer **at = &a->buckets[bucket_of(k->key)];
    while (*at != k) at = &(*at)->chain;
    *at = k->chain;
    k->in_table = false;
}

/* The same of a finished one, which goes when nobody holds it. */
static void drop(answers *a, kept_answer *k) {
    take_out(a, k);
    unlink_list(a, k);
    a->bytes -= entry_bytes(k);
    a->entries--;
    if (k->holders == 0) free_entry(k);
}

void answers_close(answers *a) {
    if (a == NULL) return;
    for (kept_answer *k = a->newest, *older; k != NULL; k = older) {
        older = k->older;
        free_entry(k);
    }
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static kept_answer *find(answers *a, const char key[DIGEST_HEX]) {
    kept_answer *k = a->buckets[bucket_of(key)];
    while (k != NULL && strcmp(k->key, key) != 0) k = k->chain;
    if (k != NULL && k->state == ANSWER_READY && k->expires <= cpu_seconds()) {
        drop(a, k);
        return NULL;
    }
    return k;
}

kept_answer *answers_begin(answers *a, const char key[DIGEST_HEX], answer_state *state) {
    pthread_mutex_lock(&a->lock);
    kept_answer *k = find(a, key);
    if (k != NULL) {
        *state = k->state;
        if (k->state == ANSWER_READY) {
            unlink_list(a, k);
            push_newest(a, k);
        }
    } else {
        k = calloc(1, sizeof *k);
        if (k != NULL) {
            memcpy(k->key, key, DIGEST_HEX);
            k->state = ANSWER_WAIT;
            k->in_table = true;
            k->chain = a->buckets[bucket_of(key)];
            a->buckets[bucket_of(key)] = k;
            *state = ANSWER_LEAD;
        }
    }
    if (k != NULL) k->holders++;
    pthread_mutex_unlock(&a->lock);
    return k;
}

void answers_release(answers *a, kept_answer *k) {
    pthread_mutex_lock(&a->lock);
    if (--k->holders == 0 && !k->in_table) free_entry(k);
    pthread_mutex_unlock(&a->lock);
}

answer_state answers_wait(answers *a, kept_answer *k, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long nanos = until.tv_nsec + (long)(seconds * 1e9);
    until.tv_sec += nanos / 1000000000;
    until.tv_nsec = nanos % 1000000000;
    pthread_mutex_lock(&a->lock);
    int waited = 0;
    while (k->state == ANSWER_WAIT && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&a->changed, &a->lock, &until);
    const answer_state state = k->state;
    pthread_mutex_unlock(&a->lock);
    return state;
}

bool answers_wanted(answers *a, kept_answer *k) {
    pthread_mutex_lock(&a->lock);
    const bool wanted = k->holders > 1;
    pthread_mutex_unlock(&a->lock);
    return wanted;
}

void answers_fail(answers *a, kept_answer *k, const clef_error *why) {
    pthread_mutex_lock(&a->lock);
    k->why = *why;
    take_out(a, k); /* whoever fails it holds it, so that it stays */
    k->state = ANSWER_FAILED;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void answers_finish(answers *a, kept_answer *k, const kept_content *content) {
    char *json = malloc(content->json_len + 1);
    if (json == NULL) {
        clef_error why = {0};
        clef_fail_memory(&why);
        answers_fail(a, k, &why);
        return;
    }
    memcpy(json, content->json, content->json_len);
    json[content->json_len] = '\0';
    pthread_mutex_lock(&a->lock);
    k->json = json;
    k->content = *content;
    k->content.json = json;
    k->expires = cpu_seconds() + a->seconds;
    k->state = ANSWER_READY;
    push_newest(a, k);
    a->bytes += entry_bytes(k);
    a->entries++;
    for (kept_answer *old = a->oldest, *newer; old != NULL && a->bytes > a->max_bytes;
         old = newer) {
        newer = old->newer;
        drop(a, old);
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

kept_content answers_content(const kept_answer *k) {
    return k->content;
}

const clef_error *answers_error(const kept_answer *k) {
    return &k->why;
}

void answers_size(answers *a, size_t *bytes, size_t *entries) {
    pthread_mutex_lock(&a->lock);
    *bytes = a->bytes;
    *entries = a->entries;
    pthread_mutex_unlock(&a->lock);
}
