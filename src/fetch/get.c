/* get.c - fetches what want.c lists, several files at a time, into a folder or the hub cache.
 *
 * Three rounds: what is there already is read and summed; the room on the disk is compared with
 * what is missing; then the missing files come. A failed file does not stop the others, so that the
 * next run has less to do; the sentence is that of the first in the list. A stop ends all.
 *
 * In the hub cache (checkpoint/hub.c has its layout) a file is written as blobs/{its name there};
 * the links of the snapshot, and last the reference that names the commit, are made when every file
 * is complete: an interrupted run leaves nothing that a reader would take for a model. */
#include "fetch/get.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pool.h"
#include "checkpoint/hub.h"
#include "fetch/manifest.h"
#include "fetch/want.h"

enum { DEFAULT_JOBS = 4, MAX_JOBS = 16 };

typedef struct {
    uint64_t have;
    bool there; /* complete */
    bool asked; /* this run fetched it */
} progress;

typedef struct {
    const get_options *o;
    want w;
    int root;           /* the folder below which all is written; -1: none */
    char *root_label;   /* its path */
    http **connections; /* [n_jobs] */
    unsigned n_jobs;
    pthread_mutex_t lock; /* guards what follows, and calls of watch */
    progress *files;      /* [w.n_files]; each entry's owner is the job that works on it */
    uint64_t all_have, all_size, fetched;
    size_t failed_file; /* w.n_files: none */
    clef_status failed;
    clef_error error;
} run;

/* What a job knows beside the run. */
typedef struct {
    run *r;
    size_t file;
} job;

static void tell(run *r, get_kind kind, size_t file, uint64_t have, const char *text) {
    if (r->o->watch == NULL) return;
    const want_file *f = kind == GET_PLANNED ? NULL : &r->w.files[file];
    const get_event e = {.kind = kind,
                         .file = file,
                         .n_files = r->w.n_files,
                         .path = f == NULL ? NULL : f->path,
                         .have = have,
                         .size = f == NULL ? 0 : f->wanted.size,
                         .all_have = r->all_have,
                         .all_size = r->all_size,
                         .fetched = r->fetched,
                         .text = text};
    r->o->watch(r->o->user, &e);
}

/* The file now has so many bytes. */
static void set_have(run *r, size_t file, uint64_t have) {
    r->all_have += have - r->files[file].have; /* wraps and comes back when it shrinks */
    r->files[file].have = have;
}

static void note_failure(run *r, size_t file, clef_status s, const clef_error *err) {
    pthread_mutex_lock(&r->lock);
    const bool stop = s == CLEF_ERR_CANCELLED, stopped = r->failed == CLEF_ERR_CANCELLED;
    if (r->failed == CLEF_OK || (stop && !stopped) || (stop == stopped && file < r->failed_file)) {
        r->failed = s;
        r->failed_file = file;
        r->error = *err;
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_stopped(run *r) {
    pthread_mutex_lock(&r->lock);
    const bool stopped = r->failed == CLEF_ERR_CANCELLED;
    pthread_mutex_unlock(&r->lock);
    return stopped || (r->o->stop != NULL && r->o->stop(r->o->user));
}

/* Where a file is written, below the root; *path is for buf_free. */
static clef_status place_of(buf *path, const run *r, size_t file, clef_error *err) {
    if (r->o->dir != NULL)
        buf_add_text(path, r->w.files[file].path);
    else
        buf_printf(path, "blobs/%s", r->w.files[file].blob);
    return buf_status(path, err);
}

/* In the cache a content is one file, however many names it has: its first name's. */
static bool is_copy(const run *r, size_t file) {
    return r->o->dir == NULL && r->w.files[file].original != file;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Bytes of a file on the disk were read. */
static clef_status on_read(void *user, size_t n, clef_error *err) {
    job *j = user;
    run *r = j->r;
    if (is_stopped(r)) return clef_fail(err, CLEF_ERR_CANCELLED, "stopped");
    pthread_mutex_lock(&r->lock);
    set_have(r, j->file, r->files[j->file].have + n);
    tell(r, GET_CHECKED, j->file, r->files[j->file].have, NULL);
    pthread_mutex_unlock(&r->lock);
    return CLEF_OK;
}

static void on_told(void *user, uint64_t have, const char *text) {
    job *j = user;
    run *r = j->r;
    pthread_mutex_lock(&r->lock);
    if (text == NULL) {
        const uint64_t before = r->files[j->file].have;
        r->fetched += have > before ? have - before : have; /* less: from the start again */
        set_have(r, j->file, have);
    }
    tell(r, text == NULL ? GET_CAME : GET_RETRY, j->file, r->files[j->file].have, text);
    pthread_mutex_unlock(&r->lock);
}

static bool on_stop(void *user) {
    const job *j = user;
    return is_stopped(j->r);
}

static void check_file(void *context, size_t file, unsigned worker) {
    run *r = context;
    if (is_copy(r, file)) return;
    job j = {r, file};
    const want_file *f = &r->w.files[file];
    clef_error err = {0};
    buf path = {0};
    bool there = false;
    (void)worker;
    clef_status s = place_of(&path, r, file, &err);
    if (s == CLEF_OK)
        s = part_is_there(&there, r->root, r->root_label, path.p, &f->wanted, on_read, &j, &err);
    buf_free(&path);
    if (s != CLEF_OK) {
        note_failure(r, file, s, &err);
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->files[file].there = there;
    set_have(r, file, there ? f->wanted.size : 0);
    if (there) tell(r, GET_PRESENT, file, f->wanted.size, NULL);
    pthread_mutex_unlock(&r->lock);
}

static void fetch_file(void *context, size_t file, unsigned worker) {
    run *r = context;
    if (r->files[file].there || is_copy(r, file) || is_stopped(r)) return;
    job j = {r, file};
    const want_file *f = &r->w.files[file];
    const download d = {.http = r->connections[worker],
                        .retry_ms = r->o->retry_ms,
                        .stop = on_stop,
                        .told = on_told,
                        .user = &j};
    clef_error err = {0};
    buf path = {0};
    part p = {.folder = -1, .fd = -1};
    clef_status s = place_of(&path, r, file, &err);
    if (s == CLEF_OK)
        s = part_open(&p, r->root, r->root_label, path.p, &f->wanted, on_read, &j, &err);
    if (s == CLEF_OK) s = download_file(&d, r->w.sources, r->w.n_sources, f->path, &p, &err);
    part_close(&p);
    buf_free(&path);
    if (s != CLEF_OK) {
        note_failure(r, file, s, &err);
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->files[file].there = r->files[file].asked = true;
    set_have(r, file, f->wanted.size);
    tell(r, GET_FETCHED, file, f->wanted.size, NULL);
    pthread_mutex_unlock(&r->lock);
}

/* Once the contents are there, so are the other files that have them. */
static void take_copies(run *r) {
    for (size_t i = 0; i < r->w.n_files; i++) {
        if (!is_copy(r, i)) continue;
        set_have(r, i, r->w.files[i].wanted.size);
        tell(r, GET_PRESENT, i, r->w.files[i].wanted.size, NULL);
    }
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Makes a folder and those above it. */
static clef_status make_folders(const char *path, clef_error *err) {
    buf made = {0};
    buf_add_text(&made, path);
    TRY(buf_status(&made, err));
    clef_status s = CLEF_OK;
    for (char *slash = made.p; s == CLEF_OK && slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) *slash = '\0';
        if (mkdir(made.p, 0777) != 0 && errno != EEXIST)
            s = clef_fail(err, CLEF_ERR_IO, "%s: cannot be made: %s", made.p, strerror(errno));
        if (slash != NULL) *slash = '/';
    }
    buf_free(&made);
    return s;
}

/* "models--Org--Name" below the cache, or the plain folder. */
static clef_status open_root(run *r, clef_error *err) {
    buf path = {0};
    if (r->o->dir != NULL) {
        buf_add_text(&path, r->o->dir);
    } else if (r->o->hub_cache != NULL) {
        const char *slash = strchr(r->w.repo, '/');
        buf_printf(&path, "%s/models--%.*s--%s", r->o->hub_cache, (int)(slash - r->w.repo),
                   r->w.repo, slash + 1);
    } else {
        return clef_fail(
            err, CLEF_ERR_INPUT,
            "neither a folder nor a place for the hub cache is known; --dir gives one");
    }
    clef_status s = buf_status(&path, err);
    if (s == CLEF_OK) s = make_folders(path.p, err);
    if (s == CLEF_OK) {
        r->root = open(path.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r->root < 0) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path.p, strerror(errno));
    }
    if (s == CLEF_OK) r->root_label = buf_take(&path);
    buf_free(&path);
    return s;
}

/* What is missing and 5 % have to fit. */
static clef_status check_room(const run *r, clef_error *err) {
    uint64_t missing = 0;
    for (size_t i = 0; i < r->w.n_files; i++) {
        if (r->files[i].there || is_copy(r, i)) continue;
        buf path = {0};
        TRY(place_of(&path, r, i, err));
        const uint64_t room = part_room(r->root, path.p, &r->w.files[i].wanted);
        buf_free(&path);
        if (__builtin_add_overflow(missing, room, &missing))
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: the files are larger than any disk",
                             r->w.repo);
    }
    struct statvfs fs;
    if (fstatvfs(r->root, &fs) != 0) return CLEF_OK; /* a full disk will still be noticed */
    const double need = (double)missing * 1.05, free = (double)fs.f_bavail * (double)fs.f_frsize;
    if (need <= free) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_IO,
                     "%s: %.1f GB to come need %.1f GB of room, and %.1f GB are free",
                     r->root_label, (double)missing / 1e9, need / 1e9, free / 1e9);
}

/* Makes `name` of the folder a link to `target`. A reader finds the old one or the new one. No file
 * of a model is called NAME.part (want.c). */
static bool set_link(int folder, const char *name, const char *target) {
    char old[256], fresh[NAME_MAX + 1];
    const ssize_t n = readlinkat(folder, name, old, sizeof old);
    if (n > 0 && str_equal((str){old, (size_t)n}, str_of(target))) return true;
    const int length = snprintf(fresh, sizeof fresh, "%s.part", name);
    if (length < 0 || (size_t)length >= sizeof fresh) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (unlinkat(folder, fresh, 0) != 0 && errno != ENOENT) return false;
    return symlinkat(target, folder, fresh) == 0 && renameat(folder, fresh, folder, name) == 0;
}

/* The link of one file of the snapshot: as many steps up as it takes to reach the model's folder.
 */
static clef_status link_file(const run *r, const want_file *f, clef_error *err) {
    buf path = {0}, target = {0};
    buf_printf(&path, "snapshots/%s/%s", r->w.commit, f->path);
    buf_add_text(&target, "../../");
    for (const char *c = f->path; *c != '\0'; c++)
        if (*c == '/') buf_add_text(&target, "../");
    buf_printf(&target, "blobs/%s", f->blob);
    clef_status s = buf_status(&path, err);
    if (s == CLEF_OK) s = buf_status(&target, err);
    if (s == CLEF_OK) {
        const char *name = NULL;
        const int folder = part_folder(&name, r->root, path.p, true);
        if (folder < 0)
            s = clef_fail(err, CLEF_ERR_IO, "%s/%s: its folder cannot be made: %s", r->root_label,
                          path.p, strerror(errno));
        else if (!set_link(folder, name, target.p))
            s = clef_fail(err, CLEF_ERR_IO,
                          "%s/%s: cannot be linked: %s; --dir fetches into a folder without links",
                          r->root_label, path.p, strerror(errno));
        if (folder >= 0) close(folder);
    }
    buf_free(&path);
    buf_free(&target);
    return s;
}

/* refs/{revision}, which names the commit. */
static clef_status write_ref(const run *r, const char *revision, clef_error *err) {
    buf path = {0};
    buf_printf(&path, "refs/%s", revision);
    clef_status s = buf_status(&path, err);
    if (s == CLEF_OK) s = part_text(r->root, r->root_label, path.p, str_of(r->w.commit), err);
    buf_free(&path);
    return s;
}

/* The wanted files become a snapshot. */
static clef_status publish(const run *r, char **folder, clef_error *err) {
    buf path = {0};
    if (r->o->dir != NULL) {
        buf_add_text(&path, r->o->dir);
    } else {
        for (size_t i = 0; i < r->w.n_files; i++) TRY(link_file(r, &r->w.files[i], err));
        const char *revision = r->o->revision != NULL ? r->o->revision : "main";
        if (strcmp(revision, r->w.commit) != 0) TRY(write_ref(r, revision, err));
        buf_printf(&path, "%s/snapshots/%s", r->root_label, r->w.commit);
    }
    TRY(buf_status(&path, err));
    *folder = buf_take(&path);
    return CLEF_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static clef_status check_options(const get_options *o, clef_error *err) {
    if (o->repo == NULL && o->manifest == NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "neither a model nor a manifest is given");
    if (o->repo != NULL && !hub_is_name(str_of(o->repo)))
        return clef_fail(err, CLEF_ERR_INPUT, "'%s': wanted a name of the form Org/Name", o->repo);
    const char *why = NULL;
    if (o->revision != NULL && !manifest_is_path(str_of(o->revision), &why))
        return clef_fail(err, CLEF_ERR_INPUT, "--revision: '%s' is refused: %s", o->revision, why);
    if (o->jobs > MAX_JOBS)
        return clef_fail(err, CLEF_ERR_INPUT, "%u files at a time, the limit is %d", o->jobs,
                         MAX_JOBS);
    if (o->all && o->n_include > 0)
        return clef_fail(err, CLEF_ERR_INPUT, "--all and --include exclude each other");
    if (o->key != NULL && o->manifest == NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "--key is for --manifest");
    return CLEF_OK;
}

static clef_status open_connections(run *r, clef_error *err) {
    const get_options *o = r->o;
    r->n_jobs = o->jobs > 0 ? o->jobs : DEFAULT_JOBS;
    r->connections = calloc(r->n_jobs, sizeof(http *));
    if (r->connections == NULL) return clef_fail_memory(err);
    const http_options options = {.ca_file = o->ca_file,
                                  .allow_http = o->allow_http,
                                  .token = o->token,
                                  .token_url = o->endpoint,
                                  .connect_s = o->connect_s,
                                  .stall_s = o->stall_s,
                                  .stop = o->stop,
                                  .user = o->user};
    for (unsigned i = 0; i < r->n_jobs; i++) TRY(http_open(&r->connections[i], &options, err));
    return CLEF_OK;
}

/* Sums the sizes and shows the plan. */
static clef_status plan(run *r, clef_error *err) {
    const get_options *o = r->o;
    const download d = {
        .http = r->connections[0], .retry_ms = o->retry_ms, .stop = o->stop, .user = o->user};
    TRY(want_find(&r->w, o, &d, err));
    r->failed_file = r->w.n_files;
    r->files = calloc(r->w.n_files, sizeof *r->files);
    if (r->files == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < r->w.n_files; i++)
        if (__builtin_add_overflow(r->all_size, r->w.files[i].wanted.size, &r->all_size))
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: the files are larger than any disk",
                             r->w.repo);
    tell(r, GET_PLANNED, 0, 0, NULL);
    return CLEF_OK;
}

/* Does `work` for every file, n_jobs at a time. */
static clef_status each_file(run *r, pool *p, pool_work *work, clef_error *err) {
    pool_run(p, r->w.n_files, work, r);
    if (r->failed != CLEF_OK && err != NULL) *err = r->error;
    return r->failed;
}

static clef_status fetch_all(run *r, get_result *out, clef_error *err) {
    pool *p = NULL;
    TRY(check_options(r->o, err));
    TRY(open_connections(r, err));
    TRY(plan(r, err));
    TRY(open_root(r, err));
    TRY(pool_open(&p, r->n_jobs, err));
    clef_status s = each_file(r, p, check_file, err);
    if (s == CLEF_OK) s = check_room(r, err);
    if (s == CLEF_OK) s = each_file(r, p, fetch_file, err);
    pool_close(p);
    if (s == CLEF_OK) take_copies(r);
    char *folder = NULL;
    if (s == CLEF_OK) s = publish(r, &folder, err);
    if (s != CLEF_OK) return s;
    *out = (get_result){
        .folder = folder, .n_files = r->w.n_files, .bytes = r->all_size, .fetched = r->fetched};
    snprintf(out->commit, sizeof out->commit, "%s", r->w.commit);
    for (size_t i = 0; i < r->w.n_files; i++) out->n_fetched += r->files[i].asked;
    return CLEF_OK;
}

clef_status get_run(get_result *out, const get_options *options, clef_error *err) {
    run r = {.o = options, .root = -1};
    const int failed = pthread_mutex_init(&r.lock, NULL);
    if (failed != 0) return clef_fail_memory(err);
    const clef_status s = fetch_all(&r, out, err);
    for (unsigned i = 0; r.connections != NULL && i < r.n_jobs; i++) http_close(r.connections[i]);
    free(r.connections);
    if (r.root >= 0) close(r.root);
    free(r.root_label);
    free(r.files);
    want_free(&r.w);
    pthread_mutex_destroy(&r.lock);
    return s;
}

void get_advice(buf *out, const char *model, const char *hub_cache) {
    char *dir = NULL;
    const clef_status s = hub_resolve(&dir, model, hub_cache, NULL);
    free(dir);
    if (s != CLEF_ERR_IO || !hub_is_name(str_of(model))) return;
    buf_printf(out, "; 'clef get %s' fetches it", model);
    manifest table = {0};
    if (manifest_builtin(&table, model, NULL, NULL) != CLEF_OK) return;
    uint64_t bytes = 0;
    for (size_t i = 0; i < table.n_files; i++)
        if (manifest_is_needed(table.files[i].path)) bytes += table.files[i].size;
    buf_printf(out, ", %.1f GB", (double)bytes / 1e9);
    manifest_free(&table);
}
