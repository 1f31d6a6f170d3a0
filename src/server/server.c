/* server.c - see server.h. What is opened last is closed first: sockets, then httpd.c with its
 * threads, then the engine. The model is loaded by a thread of its own, so that /health answers
 * from the first moment on. */
#include "server/server.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cpu.h"
#include "base/file.h"
#include "engine/engine.h"

struct server {
    server_options o;
    service s;
    httpd *h;
    edge *g;
    pthread_t loader;
    bool loading;       /* the thread was started */
    atomic_bool failed; /* load_error is set */
    clef_error load_error;
    clef_engine *engine; /* the loader's until s.state is SERVICE_READY */
};

/* ---- loading ------------------------------------------------------------------------------- */

/* Clients want to know a date of the model; the checkpoint has none but its files'. */
static long long date_of(const clef_engine *e) {
    struct stat st;
    char *path = file_join(e->dir, "config.json");
    const bool known = path != NULL && stat(path, &st) == 0;
    free(path);
    return known ? (long long)st.st_mtime : 0;
}

static int stop_warming(void *user, size_t done, size_t total) {
    service *s = user;
    (void)done;
    (void)total;
    return atomic_load(&s->state) == SERVICE_STOPPING;
}

/* Brings weights and code into memory. */
static clef_status warm(server *v, clef_error *err) {
    static const char BODY[] =
        "{\"model\": \"warm-up\", \"state\": \"A short text.\", \"questions\": {\"a\": {\"type\": "
        "\"noul\"}, \"b\": {\"type\": \"choice\", \"criteria\": {\"x\": null, \"y\": null}}}}";
    clef_answer *answer = NULL;
    const clef_ask_options ask = {.progress = stop_warming, .user = &v->s};
    const clef_status s = clef_ask(v->engine, &ask, BODY, sizeof BODY - 1, &answer, err);
    clef_answer_free(answer);
    return s == CLEF_ERR_CANCELLED ? CLEF_OK : s;
}

static void *load(void *user) {
    server *v = user;
    const double begin = cpu_seconds();
    clef_status s = clef_open(&v->engine, &v->o.engine, &v->load_error);
    if (s == CLEF_OK && v->o.warmup) s = warm(v, &v->load_error);
    if (s != CLEF_OK) {
        atomic_store(&v->failed, true);
        return NULL;
    }
    v->s.engine = v->engine;
    v->s.load_s = cpu_seconds() - begin;
    atomic_store(&v->s.created, date_of(v->engine));
    int loading = SERVICE_LOADING; /* unless it was stopped meanwhile */
    atomic_compare_exchange_strong(&v->s.state, &loading, SERVICE_READY);
    log_note(v->s.log, "ready after %.3f s", v->s.load_s);
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------- */

clef_status server_check(const server_options *o, clef_error *err) {
    api_keys *keys = NULL;
    access_log *log = NULL;
    char *text = NULL;
    int loads = 0;
    clef_status s = keys_open(&keys, o->api_key, o->api_key_file, err);
    if (s == CLEF_OK) s = log_open(&log, &o->log, err);
    if (s == CLEF_OK) s = clef_info(&o->engine, 0, &text, &loads, err);
    if (s == CLEF_OK && !loads)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: would not load; 'clef info' says why",
                      o->engine.model);
    clef_text_free(text);
    log_close(log);
    keys_close(keys);
    return s;
}

static clef_status open_parts(server *v, clef_error *err) {
    const server_options *o = &v->o;
    service *s = &v->s;
    s->rules = o->rules;
    TRY(log_open(&s->log, &o->log, err));
    TRY(keys_open(&s->keys, o->api_key, o->api_key_file, err));
    if (o->kept_bytes > 0) TRY(answers_open(&s->kept, o->kept_bytes, o->kept_s, err));
    TRY(edge_open(&v->g, s, &o->edge, err));
    s->rules.guard.loopback = edge_is_loopback(v->g);
    const httpd_options inner = {.max_connections = o->edge.max_connections, .idle_s = o->idle_s};
    TRY(httpd_open(&v->h, s, &inner, err));
    TRY(edge_start(v->g, v->h, err));
    const int failed = pthread_create(&v->loader, NULL, load, v);
    if (failed != 0)
        return clef_fail(err, CLEF_ERR_IO, "cannot start a thread: %s", strerror(failed));
    v->loading = true;
    return CLEF_OK;
}

clef_status server_open(server **out, const server_options *options, clef_error *err) {
    server *v = calloc(1, sizeof *v);
    if (v == NULL) return clef_fail_memory(err);
    v->o = *options;
    const clef_status s = open_parts(v, err);
    if (s != CLEF_OK) {
        server_close(v);
        return s;
    }
    log_note(v->s.log, "clef %s listens on http://%s", clef_version(), edge_address(v->g));
    if (!v->s.rules.guard.loopback && !keys_needed(v->s.keys))
        log_note(v->s.log, "warning: anybody who reaches %s may ask: there is no API key",
                 edge_address(v->g));
    *out = v;
    return CLEF_OK;
}

const char *server_address(const server *v) {
    return edge_address(v->g);
}

clef_status server_status(server *v, clef_error *err) {
    if (!atomic_load(&v->failed)) return CLEF_OK;
    *err = v->load_error;
    return err->status;
}

bool server_is_ready(server *v) {
    return atomic_load(&v->s.state) == SERVICE_READY;
}

clef_status server_reload(server *v, clef_error *err) {
    clef_error of_log = {0}, of_keys = {0};
    const clef_status opened = log_reopen(v->s.log, &of_log);
    if (opened == CLEF_OK)
        log_note(v->s.log, "log opened again");
    else
        log_note(v->s.log, "the log stays as it was: %s", of_log.text);
    const clef_status read = keys_reload(v->s.keys, &of_keys);
    if (read == CLEF_OK)
        log_note(v->s.log, "keys read again");
    else
        log_note(v->s.log, "the keys stay as they were: %s", of_keys.text);
    if (opened == CLEF_OK && read == CLEF_OK) return CLEF_OK;
    *err = opened != CLEF_OK ? of_log : of_keys;
    return err->status;
}

void server_stop(server *v) {
    atomic_store(&v->s.state, SERVICE_STOPPING);
    edge_stop(v->g);
    log_note(v->s.log, "stopping");
}

bool server_is_done(server *v) {
    return edge_is_empty(v->g);
}

void server_cancel(server *v) {
    atomic_store(&v->s.cancel, true);
}

void server_close(server *v) {
    if (v == NULL) return;
    atomic_store(&v->s.state, SERVICE_STOPPING);
    atomic_store(&v->s.cancel, true);
    if (v->loading) pthread_join(v->loader, NULL);
    edge_close(v->g);
    httpd_close(v->h);
    clef_close(v->engine);
    answers_close(v->s.kept);
    keys_close(v->s.keys);
    log_close(v->s.log);
    free(v);
}
