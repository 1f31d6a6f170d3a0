/* log.c - see log.h. A line is written with one write call to a file opened for appending, so lines
 * of several threads do not mix. What came from a client is escaped: no line feed, no escape
 * sequence of it reaches a terminal. A line that cannot be written is lost; the request is not. */
#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "text/pyjson.h"

enum { SHOWN_PATH = 512 };

struct access_log {
    char *path; /* NULL: standard error */
    bool json, bodies, off;
    pthread_rwlock_t lock; /* guards fd */
    int fd;
};

static clef_status open_file(int *fd, const char *path, clef_error *err) {
    *fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (*fd < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    return CLEF_OK;
}

clef_status log_open(access_log **out, const log_options *options, clef_error *err) {
    access_log *l = calloc(1, sizeof *l);
    if (l == NULL) return clef_fail_memory(err);
    pthread_rwlock_init(&l->lock, NULL);
    l->json = options->json;
    l->bodies = options->bodies;
    l->fd = STDERR_FILENO;
    l->off = options->path != NULL && strcmp(options->path, "none") == 0;
    clef_status s = CLEF_OK;
    if (options->path != NULL && !l->off) {
        l->path = strdup(options->path);
        s = l->path == NULL ? clef_fail_memory(err) : open_file(&l->fd, l->path, err);
    }
    if (s != CLEF_OK) {
        log_close(l);
        return s;
    }
    *out = l;
    return CLEF_OK;
}

void log_close(access_log *l) {
    if (l == NULL) return;
    if (l->path != NULL && l->fd >= 0) close(l->fd);
    pthread_rwlock_destroy(&l->lock);
    free(l->path);
    free(l);
}

clef_status log_reopen(access_log *l, clef_error *err) {
    if (l->path == NULL) return CLEF_OK;
    int fd = -1;
    TRY(open_file(&fd, l->path, err));
    pthread_rwlock_wrlock(&l->lock);
    close(l->fd);
    l->fd = fd;
    pthread_rwlock_unlock(&l->lock);
    return CLEF_OK;
}

static void add_time(buf *out) {
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    char text[40];
    const size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    buf_add(out, text, n);
    buf_printf(out, ".%03ldZ", now.tv_nsec / 1000000);
}

static void write_line(access_log *l, const buf *line) {
    if (line->failed) return;
    pthread_rwlock_rdlock(&l->lock);
    ssize_t done;
    do {
        done = write(l->fd, line->p, line->n);
    } while (done < 0 && errno == EINTR);
    pthread_rwlock_unlock(&l->lock);
}

/* A body that is no UTF-8 is written with its bytes escaped. */
static void add_json_text(buf *out, str text) {
    if (utf8_check(text.p, text.n) == text.n) {
        pyjson_string(out, text);
        return;
    }
    buf safe = {0};
    buf_add_safe(&safe, text);
    pyjson_string(out, (str){safe.p, safe.n});
    if (safe.failed) out->failed = true;
    buf_free(&safe);
}

static str shown_path(const call *c) {
    return (str){c->path.p, c->path.n < SHOWN_PATH ? c->path.n : SHOWN_PATH};
}

static str reply_text(const reply *r) {
    return r->fixed.p != NULL ? r->fixed : (str){r->body.p, r->body.n};
}

static void add_json(buf *out, const access_log *l, const call *c, const reply *r, int status,
                     size_t bytes, double seconds) {
    buf_add_text(out, "{\"time\": \"");
    add_time(out);
    buf_printf(out, "\", \"id\": ");
    pyjson_string(out, str_of(c->id));
    buf_add_text(out, ", \"method\": ");
    add_json_text(out, c->method);
    buf_add_text(out, ", \"path\": ");
    add_json_text(out, shown_path(c));
    buf_printf(out, ", \"status\": %d, \"bytes_in\": %zu, \"bytes_out\": %zu, \"ms\": %.3f", status,
               c->body.n, bytes, seconds * 1e3);
    if (c->key > 0) buf_printf(out, ", \"key\": %zu", c->key);
    if (c->n_questions > 0)
        buf_printf(out, ", \"questions\": %u, \"tokens\": %u, \"cached_tokens\": %u, \"kept\": %s",
                   c->n_questions, c->n_tokens, c->n_cached, c->from_cache ? "true" : "false");
    if (c->queue_s >= 0)
        buf_printf(out, ", \"queue_ms\": %.3f, \"encode_ms\": %.3f, \"model_ms\": %.3f",
                   c->queue_s * 1e3, c->encode_s * 1e3, c->model_s * 1e3);
    if (l->bodies) {
        buf_add_text(out, ", \"request\": ");
        add_json_text(out, c->body);
        buf_add_text(out, ", \"response\": ");
        add_json_text(out, reply_text(r));
    }
    buf_add_text(out, "}\n");
}

static void add_text(buf *out, const access_log *l, const call *c, const reply *r, int status,
                     size_t bytes, double seconds) {
    add_time(out);
    buf_printf(out, " %s ", c->id);
    buf_add_safe(out, c->method);
    buf_add_char(out, ' ');
    buf_add_safe(out, shown_path(c));
    buf_printf(out, " %d %zu->%zu %.3fms", status, c->body.n, bytes, seconds * 1e3);
    if (c->key > 0) buf_printf(out, " key=%zu", c->key);
    if (c->n_questions > 0)
        buf_printf(out, " questions=%u tokens=%u cached=%u%s", c->n_questions, c->n_tokens,
                   c->n_cached, c->from_cache ? " kept" : "");
    if (c->queue_s >= 0)
        buf_printf(out, " queue=%.3fms encode=%.3fms model=%.3fms", c->queue_s * 1e3,
                   c->encode_s * 1e3, c->model_s * 1e3);
    if (l->bodies) {
        buf_add_text(out, " request=");
        buf_add_safe(out, c->body);
        buf_add_text(out, " response=");
        buf_add_safe(out, reply_text(r));
    }
    buf_add_char(out, '\n');
}

void log_request(access_log *l, const call *c, const reply *r, int status, size_t bytes,
                 double seconds) {
    if (l->off) return;
    buf line = {0};
    if (l->json)
        add_json(&line, l, c, r, status, bytes, seconds);
    else
        add_text(&line, l, c, r, status, bytes, seconds);
    write_line(l, &line);
    buf_free(&line);
}

void log_note(access_log *l, const char *format, ...) {
    if (l->off) return;
    char text[1200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    buf line = {0};
    if (l->json) {
        buf_add_text(&line, "{\"time\": \"");
        add_time(&line);
        buf_add_text(&line, "\", \"note\": ");
        add_json_text(&line, str_of(text));
        buf_add_text(&line, "}\n");
    } else {
        add_time(&line);
        buf_add_char(&line, ' ');
        buf_add_safe(&line, str_of(text));
        buf_add_char(&line, '\n');
    }
    write_line(l, &line);
    buf_free(&line);
}
