/* serve.c - clef serve: options to a server, and signals to what they ask of it.
 *
 * All signals are blocked before the first thread is made, and waited for here: no handler runs
 * beside the server. A second SIGTERM or SIGINT ends the program without closing anything. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/io.h"
#include "cli/model.h"
#include "server/server.h"

enum {
    DEFAULT_PORT = 8423,
    DEFAULT_BODY = 32 << 20,
    DEFAULT_HELD = 256 << 20, /* of all requests at once, or eight of the largest bodies */
    VALUES_BYTES = 64 << 20,  /* a million values of JSON */
    DEFAULT_CACHE = 1 << 30,
    DEFAULT_PIXELS = 2 << 20, /* 1920 x 1088 stay; a phone's photo costs twenty times as much */
    GIVE_BACK_EVERY_S = 5
};

static uint64_t number(const args *a, option_id id, uint64_t or_else) {
    return a->options[id].given ? a->options[id].number : or_else;
}

static const char *text(const args *a, option_id id, const char *or_else) {
    return a->options[id].given ? a->options[id].text : or_else;
}

static service_rules rules_of(const args *a) {
    const option_value *o = a->options;
    const size_t max_body = number(a, OPTION_MAX_BODY, DEFAULT_BODY);
    service_rules r = {
        .limits = {.max_depth = (uint32_t)number(a, OPTION_MAX_DEPTH, 128),
                   .max_questions = (uint32_t)number(a, OPTION_MAX_QUESTIONS, 256),
                   .max_options = (uint32_t)number(a, OPTION_MAX_OPTIONS, 255),
                   .max_levels = (uint32_t)number(a, OPTION_MAX_LEVELS, 10),
                   .max_images = (uint32_t)number(a, OPTION_MAX_IMAGES, 8),
                   .max_batch = (uint32_t)number(a, OPTION_MAX_BATCH, 256),
                   .max_tree_bytes = max_body + VALUES_BYTES, /* the parser copies the text */
                   .strict = o[OPTION_STRICT].given},
        .max_body = max_body,
        .max_held = max_body * 8 > DEFAULT_HELD ? max_body * 8 : DEFAULT_HELD,
        .ask = model_ask_options(a),
        .names = {.served = text(a, OPTION_SERVED_NAME, "clef-flash"),
                  .aliases = o[OPTION_ALIAS].list,
                  .n_aliases = o[OPTION_ALIAS].n_list,
                  .any = o[OPTION_ANY_MODEL].given},
        .guard = {.hosts = o[OPTION_ALLOW_HOST].list,
                  .n_hosts = o[OPTION_ALLOW_HOST].n_list,
                  .origins = o[OPTION_ALLOW_ORIGIN].list,
                  .n_origins = o[OPTION_ALLOW_ORIGIN].n_list},
    };
    r.ask.max_pixels = number(a, OPTION_MAX_PIXELS, DEFAULT_PIXELS);
    r.ask.max_picture_bytes = number(a, OPTION_MAX_IMAGE_BYTES, 12 << 20);
    r.ask.max_picture_pixels = number(a, OPTION_MAX_IMAGE_PIXELS, 16 << 20);
    r.ask.max_decoded_pixels = number(a, OPTION_MAX_MEDIA_PIXELS, 256 << 20);
    r.ask.timeout_s = (double)number(a, OPTION_DEADLINE, 0);
    return r;
}

static server_options options_of(const args *a, const buf *hub_cache) {
    const option_value *o = a->options;
    server_options v = {
        .engine = model_options(a, hub_cache),
        .warmup = o[OPTION_WARMUP].given,
        .edge = {.host = text(a, OPTION_HOST, "127.0.0.1"),
                 .port = (uint16_t)number(a, OPTION_PORT, DEFAULT_PORT),
                 .max_connections = (unsigned)number(a, OPTION_MAX_CONNECTIONS, 1024),
                 .head_s = (double)number(a, OPTION_HEAD_SECONDS, 20),
                 .write_s = (double)number(a, OPTION_WRITE_SECONDS, 30)},
        .idle_s = (unsigned)number(a, OPTION_IDLE_SECONDS, 75),
        .api_key = text(a, OPTION_API_KEY, NULL),
        .api_key_file = text(a, OPTION_API_KEY_FILE, NULL),
        .log = {.path = text(a, OPTION_LOG, NULL),
                .json = o[OPTION_LOG_FORMAT].given && o[OPTION_LOG_FORMAT].choice == 1,
                .bodies = o[OPTION_LOG_BODIES].given},
        .kept_bytes = number(a, OPTION_ANSWER_CACHE_BYTES, 64 << 20),
        .kept_s = (double)number(a, OPTION_ANSWER_CACHE_SECONDS, 300),
        .rules = rules_of(a),
    };
    v.engine.queue = (uint32_t)number(a, OPTION_QUEUE, 0);
    v.engine.batch_tokens = (uint32_t)number(a, OPTION_BATCH_TOKENS, 0);
    v.engine.cache_bytes = number(a, OPTION_CACHE_BYTES, DEFAULT_CACHE);
    return v;
}

/* A connection takes three descriptors. */
static clef_status raise_descriptors(unsigned connections, clef_error *err) {
    struct rlimit limit;
    const rlim_t wanted = (rlim_t)connections * 3 + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return CLEF_OK;
    if (limit.rlim_max < wanted)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "--max-connections %u needs %llu open files, the system allows %llu",
                         connections, (unsigned long long)wanted,
                         (unsigned long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return clef_fail(err, CLEF_ERR_IO, "cannot open more files: %s", strerror(errno));
    return CLEF_OK;
}

static sigset_t watched_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

/* The next signal, or 0 after a moment without one. */
static int next_signal(const sigset_t *set) {
    const struct timespec moment = {.tv_nsec = 100 * 1000 * 1000};
    const int got = sigtimedwait(set, NULL, &moment);
    return got > 0 ? got : 0;
}

/* From the first request to stop to the end. */
static void drain(server *v, const sigset_t *set, double grace_s) {
    const double begin = cpu_seconds(), last_s = 10;
    bool cancelled = false;
    server_stop(v);
    while (!server_is_done(v)) {
        const int got = next_signal(set);
        if (got == SIGTERM || got == SIGINT) _exit(128 + got);
        const double passed = cpu_seconds() - begin;
        if (passed > grace_s && !cancelled) {
            server_cancel(v);
            cancelled = true;
        }
        if (passed > grace_s + last_s) return; /* somebody reads his answer too slowly */
    }
}

/* Of itself glibc gives back only what is free at the end of a heap, and a kept state there holds
 * all that is free in front of it. */
static void give_memory_back(double *last) {
    const double now = cpu_seconds();
    if (now - *last < GIVE_BACK_EVERY_S) return;
    memory_give_back();
    *last = now;
}

static clef_status run(server *v, const sigset_t *set, double grace_s, clef_error *err) {
    double given_back = cpu_seconds();
    for (;;) {
        TRY(server_status(v, err));
        give_memory_back(&given_back);
        const int got = next_signal(set);
        if (got == SIGHUP) {
            clef_error why = {0};
            if (server_reload(v, &why) != CLEF_OK) fprintf(stderr, "clef: SIGHUP: %s\n", why.text);
        } else if (got != 0) {
            drain(v, set, grace_s);
            return CLEF_OK;
        }
    }
}

static clef_status serve(const args *a, const buf *hub_cache, clef_error *err) {
    const server_options options = options_of(a, hub_cache);
    if (a->options[OPTION_CHECK].given) {
        TRY(server_check(&options, err));
        return io_write(NULL, STR("the configuration is right\n"), err);
    }
    TRY(raise_descriptors(options.edge.max_connections, err));
    const sigset_t set = watched_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    memory_share_heaps();
    server *v = NULL;
    clef_status s = server_open(&v, &options, err);
    if (s == CLEF_OK) s = run(v, &set, (double)number(a, OPTION_GRACE, 30), err);
    server_close(v);
    return s;
}

clef_status command_serve(const args *given, clef_error *err) {
    args a = *given;
    config_file file = {0};
    buf hub_cache = {0};
    clef_status s = CLEF_OK;
    if (a.options[OPTION_CONFIG].given)
        s = config_file_read(&file, &a, a.options[OPTION_CONFIG].text, err);
    if (s == CLEF_OK && !a.options[OPTION_MODEL].given)
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: names no model, and neither does the command line",
                      a.options[OPTION_CONFIG].text);
    model_hub_cache(&hub_cache);
    if (s == CLEF_OK) s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = serve(&a, &hub_cache, err);
    buf_free(&hub_cache);
    config_file_free(&file);
    return s;
}
