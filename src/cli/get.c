/* get.c - clef get: what to fetch comes from the command line, whom to ask and with which token
 * from the environment, whose variables are huggingface_hub's.
 *
 * On a terminal a line stands for every file that comes, and one for all of them, drawn over at
 * most ten times a second; a finished file leaves a line behind. Elsewhere only those lines are
 * printed. With --json everything is a line of JSON on standard output. */
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/quote.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "fetch/get.h"

enum { MAX_SHOWN = 16, MAX_TOKEN = 4096 };

typedef struct {
    size_t file;
    char path[64]; /* its end, when it is longer */
    uint64_t have, size;
} shown_file;

typedef struct {
    bool json, terminal;
    bool began;   /* a byte came */
    double begin; /* then */
    double drawn_at;
    unsigned drawn; /* lines of the picture on the terminal */
    shown_file files[MAX_SHOWN];
    unsigned n_files;
    atomic_int failed; /* a clef_status, of printing; asked by the threads that fetch */
    clef_error *err;
} show;

/* ---- showing --------------------------------------------------------------------------------- */

static void print(show *v, bool out, buf *text) {
    clef_status s = buf_status(text, v->err);
    const str line = {text->p, text->n};
    if (s == CLEF_OK && out) s = io_write(NULL, line, v->err);
    if (s == CLEF_OK && !out) io_write_error(line, NULL); /* no reason to give up the work */
    if (s != CLEF_OK && v->failed == CLEF_OK) v->failed = (int)s;
    buf_free(text);
}

/* Bytes a second, and seconds until all is there; 0: not known yet. */
static double rate_of(const show *v, const get_event *e, double *left) {
    const double passed = v->began ? cpu_seconds() - v->begin : 0;
    const double rate = passed > 0.2 ? (double)e->fetched / passed : 0;
    *left = rate > 0 ? (double)(e->all_size - e->all_have) / rate : 0;
    return rate;
}

static void add_size(buf *out, uint64_t bytes) {
    const double b = (double)bytes;
    if (b < 1e6)
        buf_printf(out, "%.1f kB", b / 1e3);
    else if (b < 1e9)
        buf_printf(out, "%.1f MB", b / 1e6);
    else
        buf_printf(out, "%.2f GB", b / 1e9);
}

static void wipe_picture(show *v) {
    if (v->drawn == 0) return;
    buf text = {0};
    buf_printf(&text, "\x1b[%uA\r\x1b[J", v->drawn);
    v->drawn = 0;
    v->drawn_at = 0; /* and comes back below the line that made room for itself */
    print(v, false, &text);
}

static void add_line(buf *out, const term *t, const char *label, uint64_t have, uint64_t size,
                     str tail) {
    const unsigned label_width = t->width / 3, tail_width = 44;
    buf_printf(out, "%-*.*s ", (int)label_width, (int)label_width, label);
    const double share = size > 0 ? (double)have / (double)size : 1;
    if (t->width > label_width + tail_width + 8)
        term_add_bar(out, t, share, t->width - label_width - tail_width - 3);
    buf_printf(out, " %3.0f %%", share * 100);
    buf_add_str(out, tail);
    buf_add_text(out, "\x1b[K\n");
}

static void draw(show *v, const get_event *e) {
    const double now = cpu_seconds();
    if (now - v->drawn_at < 0.1) return;
    v->drawn_at = now;
    const term t = term_of(STDERR_FILENO);
    buf text = {0}, tail = {0};
    if (v->drawn > 0) buf_printf(&text, "\x1b[%uA\r", v->drawn);
    for (unsigned i = 0; i < v->n_files; i++) {
        const shown_file *f = &v->files[i];
        tail.n = 0;
        buf_add_text(&tail, " of ");
        add_size(&tail, f->size);
        add_line(&text, &t, f->path, f->have, f->size, (str){tail.p, tail.n});
    }
    double left = 0;
    const double rate = rate_of(v, e, &left);
    tail.n = 0;
    buf_add_text(&tail, " of ");
    add_size(&tail, e->all_size);
    buf_printf(&tail, ", %.1f MB/s", rate / 1e6);
    if (left > 0) buf_printf(&tail, ", %.0f s left", left);
    add_line(&text, &t, "all files", e->all_have, e->all_size, (str){tail.p, tail.n});
    buf_add_text(&text, "\x1b[J"); /* the lines of a longer picture */
    v->drawn = v->n_files + 1;
    buf_free(&tail);
    print(v, false, &text);
}

/* Keeps the list of files that come; a finished one leaves it. */
static void follow(show *v, const get_event *e) {
    unsigned i = 0;
    while (i < v->n_files && v->files[i].file != e->file) i++;
    if (e->kind == GET_PRESENT || e->kind == GET_FETCHED) {
        if (i == v->n_files) return;
        v->n_files--;
        for (; i < v->n_files; i++) v->files[i] = v->files[i + 1];
        return;
    }
    if (i == MAX_SHOWN) return;
    if (i == v->n_files) {
        shown_file *f = &v->files[v->n_files++];
        const size_t n = strlen(e->path), room = sizeof f->path - 1;
        *f = (shown_file){.file = e->file};
        memcpy(f->path, e->path + (n > room ? n - room : 0), n > room ? room : n);
    }
    v->files[i].have = e->have;
    v->files[i].size = e->size;
}

static void add_json_event(buf *out, const show *v, const get_event *e) {
    static const char *const names[] = {
        [GET_PLANNED] = "plan", [GET_CHECKED] = "progress", [GET_CAME] = "progress",
        [GET_RETRY] = "retry",  [GET_PRESENT] = "file",     [GET_FETCHED] = "file",
    };
    buf_printf(out, "{\"event\": \"%s\"", names[e->kind]);
    if (e->path != NULL) {
        buf_add_text(out, ", \"file\": ");
        quote_json(out, str_of(e->path));
        buf_printf(out, ", \"have\": %llu, \"size\": %llu", (unsigned long long)e->have,
                   (unsigned long long)e->size);
    } else {
        buf_printf(out, ", \"files\": %zu", e->n_files);
    }
    if (e->kind == GET_PRESENT || e->kind == GET_FETCHED)
        buf_printf(out, ", \"fetched\": %s", e->kind == GET_FETCHED ? "true" : "false");
    if (e->text != NULL) {
        buf_add_text(out, ", \"reason\": ");
        quote_json(out, str_of(e->text));
    }
    double left = 0;
    const double rate = rate_of(v, e, &left);
    buf_printf(out, ", \"all_have\": %llu, \"all_size\": %llu", (unsigned long long)e->all_have,
               (unsigned long long)e->all_size);
    if (rate > 0) buf_printf(out, ", \"bytes_per_s\": %.0f, \"seconds_left\": %.1f", rate, left);
    buf_add_text(out, "}\n");
}

static void show_json(show *v, const get_event *e) {
    const bool often = e->kind == GET_CAME || e->kind == GET_CHECKED;
    const double now = cpu_seconds();
    if (often && now - v->drawn_at < 1) return;
    if (often) v->drawn_at = now;
    buf text = {0};
    add_json_event(&text, v, e);
    print(v, true, &text);
}

static void on_event(void *user, const get_event *e) {
    show *v = user;
    if (e->kind == GET_CAME && !v->began) {
        v->began = true;
        v->begin = cpu_seconds();
    }
    if (v->json) {
        show_json(v, e);
        return;
    }
    if (e->kind == GET_PLANNED) return;
    follow(v, e);
    if (e->kind == GET_RETRY || e->kind == GET_PRESENT || e->kind == GET_FETCHED) {
        buf text = {0};
        wipe_picture(v);
        buf_add_safe(&text, str_of(e->text != NULL ? e->text : e->path));
        if (e->kind == GET_RETRY) {
            buf_add_text(&text, "; trying again\n");
        } else {
            buf_add_text(&text, "  ");
            add_size(&text, e->size);
            buf_add_text(&text, e->kind == GET_FETCHED ? "  fetched\n" : "  there already\n");
        }
        print(v, false, &text);
    }
    if (v->terminal) draw(v, e);
}

static bool on_stop(void *user) {
    const show *v = user;
    return stop_signal() != 0 || v->failed != CLEF_OK;
}

/* ---- the environment ------------------------------------------------------------------------- */

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

/* As huggingface_hub reads a switch. */
static bool is_on(const char *name) {
    const char *text = variable(name);
    if (text == NULL) return false;
    return strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0 ||
           strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0;
}

/* Appends the token, without blanks around it; nothing when there is none. */
static clef_status read_token(buf *out, clef_error *err) {
    if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return CLEF_OK;
    buf path = {0}, text = {0};
    const char *home = variable("HOME");
    clef_status s = CLEF_OK;
    if (variable("HF_TOKEN") != NULL) {
        buf_add_text(&text, variable("HF_TOKEN"));
    } else {
        if (variable("HF_TOKEN_PATH") != NULL)
            buf_add_text(&path, variable("HF_TOKEN_PATH"));
        else if (variable("HF_HOME") != NULL)
            buf_printf(&path, "%s/token", variable("HF_HOME"));
        else if (variable("XDG_CACHE_HOME") != NULL)
            buf_printf(&path, "%s/huggingface/token", variable("XDG_CACHE_HOME"));
        else if (home != NULL)
            buf_printf(&path, "%s/.cache/huggingface/token", home);
        s = buf_status(&path, err);
        if (s == CLEF_OK && path.n > 0 && file_exists(path.p))
            s = file_read(&text, path.p, MAX_TOKEN, err);
    }
    size_t begin = 0;
    while (begin < text.n && strchr(" \t\r\n", text.p[begin]) != NULL) begin++;
    while (text.n > begin && strchr(" \t\r\n", text.p[text.n - 1]) != NULL) text.n--;
    if (text.n > begin) buf_add(out, text.p + begin, text.n - begin);
    if (s == CLEF_OK) s = buf_status(out, err);
    buf_free(&path);
    buf_free(&text);
    return s;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_manifest(const char *text) {
    const size_t n = strlen(text);
    return strstr(text, "://") != NULL || (n > 5 && strcmp(text + n - 5, ".json") == 0);
}

static clef_status print_result(const get_result *r, bool json, clef_error *err) {
    buf text = {0};
    if (json) {
        buf_add_text(&text, "{\"event\": \"done\", \"folder\": ");
        quote_json(&text, str_of(r->folder));
        buf_printf(&text,
                   ", \"commit\": \"%s\", \"files\": %zu, \"fetched_files\": %zu, \"bytes\": %llu, "
                   "\"fetched_bytes\": %llu}",
                   r->commit, r->n_files, r->n_fetched, (unsigned long long)r->bytes,
                   (unsigned long long)r->fetched);
    } else {
        buf_add_text(&text, r->folder);
    }
    buf_add_char(&text, '\n');
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

static clef_status set_what(get_options *g, const args *a, clef_error *err) {
    const option_value *o = a->options;
    const char *what = o[OPTION_MODEL].text;
    g->manifest = o[OPTION_MANIFEST].text;
    if (what == NULL) return CLEF_OK;
    if (!is_manifest(what)) {
        g->repo = what;
        return CLEF_OK;
    }
    if (g->manifest != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "two manifests are given: '%s' and '%s'", what,
                         g->manifest);
    g->manifest = what;
    return CLEF_OK;
}

clef_status command_get(const args *a, clef_error *err) {
    if (is_on("HF_HUB_OFFLINE"))
        return clef_fail(err, CLEF_ERR_INPUT, "HF_HUB_OFFLINE is set: nothing is fetched");
    const option_value *o = a->options;
    buf hub_cache = {0}, token = {0};
    get_result result = {0};
    show v = {.json = o[OPTION_JSON].given, .terminal = isatty(STDERR_FILENO), .err = err};
    const char *endpoint = variable("HF_ENDPOINT");
    get_options g = {.revision = o[OPTION_REVISION].text,
                     .key = o[OPTION_KEY].text,
                     .sources = o[OPTION_SOURCE].list,
                     .n_sources = o[OPTION_SOURCE].n_list,
                     .include = o[OPTION_INCLUDE].list,
                     .n_include = o[OPTION_INCLUDE].n_list,
                     .all = o[OPTION_ALL].given,
                     .dir = o[OPTION_DIR].text,
                     .endpoint = endpoint != NULL ? endpoint : "https://huggingface.co",
                     .ca_file = variable("SSL_CERT_FILE"),
                     .allow_http = o[OPTION_ALLOW_HTTP].given,
                     .jobs = (unsigned)o[OPTION_JOBS].number,
                     .stop = on_stop,
                     .watch = on_event,
                     .user = &v};
    model_hub_cache(&hub_cache);
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = set_what(&g, a, err);
    if (s == CLEF_OK) s = read_token(&token, err);
    g.hub_cache = hub_cache.n > 0 ? hub_cache.p : NULL;
    g.token = token.n > 0 ? token.p : NULL;
    clef_error failure = {0};
    if (s == CLEF_OK && (s = get_run(&result, &g, &failure)) != CLEF_OK) {
        if (v.failed != CLEF_OK)
            s = (clef_status)v.failed; /* *err is that of printing */
        else if (s == CLEF_ERR_CANCELLED)
            s = clef_fail(err, s, "stopped by a signal; the same command goes on from here");
        else
            *err = failure;
    }
    wipe_picture(&v);
    if (s == CLEF_OK) s = print_result(&result, v.json, err);
    free(result.folder);
    buf_free(&hub_cache);
    buf_free(&token);
    return s;
}
