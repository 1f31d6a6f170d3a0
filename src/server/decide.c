/* decide.c - see decide.h. The one place where a status of the library becomes an HTTP status.
 *
 * A body is parsed here once, checked, and written again for the engine in one spelling without the
 * members that nobody reads. The digest of that spelling, with all that changes an answer, is the
 * key under which an answer is kept and equal requests in flight find each other. The one who came
 * first asks the engine; when its client leaves while others wait for the same answer, it goes on.
 */
#include "server/decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/cpu.h"
#include "engine/engine.h"
#include "text/pyjson.h"

/* ---- shared with decide_batch.c ------------------------------------------------------------ */

bool decide_ready(service *s, reply *r) {
    const int state = atomic_load(&s->state);
    if (state == SERVICE_READY) return true;
    reply_error(r, 503, reply_error_type(503), "%s",
                state == SERVICE_LOADING ? "The model is being loaded" : "The server is stopping");
    return false;
}

bool decide_model(const service *s, const checked *q, str fallback, reply *r) {
    const str name = q->model.p != NULL ? q->model : fallback;
    if (name.p == NULL || names_match(&s->rules.names, name)) return true;
    reply_error(r, 400, reply_error_type(400), "Unknown model: %s", request_show(name).text);
    return false;
}

/* The progress of a request: stops it when the client has left and nobody else wants the answer. */
static int should_stop(void *user, size_t done, size_t total) {
    const decision *d = user;
    (void)done;
    (void)total;
    if (atomic_load(&d->s->cancel)) return 1;
    if (d->c->gone == NULL || !d->c->gone(d->c->gone_user)) return 0;
    return d->kept == NULL || !answers_wanted(d->s->kept, d->kept);
}

void decide_begin(decision *d, service *s, call *c, const checked *q) {
    *d = (decision){.s = s, .c = c, .ask = s->rules.ask};
    if (q->truncate == CHECK_TRUNCATE) d->ask.truncate = CLEF_TRUNCATE_STATE;
    if (q->truncate == CHECK_NO_TRUNCATE) d->ask.truncate = CLEF_TRUNCATE_NONE;
    d->ask.progress = should_stop;
    d->ask.user = d;
    d->ask.cache_key_len = (size_t)snprintf(d->key, sizeof d->key, "%zu", c->key);
    d->ask.cache_key = d->key;
}

/* "images[2]: sentence" to its place; the sentence is what follows. */
static const char *split_path(check_place place[2], const check_place *where, const char *text) {
    const size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    const char *rest = text + name;
    if (name == 0) return text;
    place[0] = (check_place){where, {text, name}, 0};
    if (rest[0] == ':' && rest[1] == ' ') return rest + 2;
    char *end = NULL;
    if (rest[0] != '[') return NULL;
    place[1] = (check_place){&place[0], {NULL, 0}, strtoul(rest + 1, &end, 10)};
    return end[0] == ']' && end[1] == ':' && end[2] == ' ' ? end + 3 : NULL;
}

/* A fault of one field, found by the library. */
static void invalid_field(reply *r, const clef_error *err, const check_place *where) {
    check_place place[2] = {0};
    const char *sentence = split_path(place, where, err->text);
    const check_place *at = sentence == NULL ? where : &place[place[1].outer != NULL];
    if (place[0].name.p == NULL) at = where;
    problems found = {0};
    problem_add(&found, at, err->status == CLEF_ERR_UNSUPPORTED ? "unsupported" : "value_error",
                "%s", sentence == NULL ? err->text : sentence);
    reply_invalid(r, &found.list);
    buf_free(&found.list);
}

static bool is_about_media(const char *text) {
    return strncmp(text, "images", 6) == 0 || strncmp(text, "videos", 6) == 0 ||
           strncmp(text, "media_kwargs", 12) == 0;
}

void decide_failed(const service *s, reply *r, const clef_error *err, const check_place *where) {
    switch (err->status) {
    case CLEF_ERR_INPUT:
    case CLEF_ERR_UNSUPPORTED:
        invalid_field(r, err, where);
        return;
    case CLEF_ERR_LIMIT:
        if (is_about_media(err->text))
            invalid_field(r, err, where);
        else
            reply_error(r, 413, "max_tokens_exceeded", "%s", err->text);
        return;
    case CLEF_ERR_BUSY:
        reply_error(r, 429, reply_error_type(429), "The queue is full");
        return;
    case CLEF_ERR_DEADLINE:
        reply_error(r, 503, reply_error_type(503), "No answer within %g seconds",
                    s->rules.ask.timeout_s);
        return;
    case CLEF_ERR_CANCELLED:
        reply_error(r, 503, reply_error_type(503), "The server is stopping");
        r->abandon = !atomic_load(&s->cancel);
        return;
    case CLEF_ERR_MEMORY:
        reply_error(r, 503, reply_error_type(503), "The server is short of memory");
        return;
    case CLEF_OK:
    case CLEF_ERR_FORMAT:
    case CLEF_ERR_IO:
    case CLEF_ERR_INTERNAL:
        break;
    }
    log_note(s->log, "internal error: %s", err->text);
    reply_error(r, 500, reply_error_type(500), "The model gave no answer");
}

/* ---- one request --------------------------------------------------------------------------- */

/* Fills *r with an answer, and what the log says about it. */
static void answer_with(call *c, reply *r, const kept_content *content) {
    reply_reset(r, 200);
    buf_add(&r->body, content->json, content->json_len);
    reply_header(r, "x-clef-cached-tokens", "%u", content->n_cached);
    c->n_questions = content->n_questions;
    c->n_tokens = content->n_tokens;
    c->n_cached = content->n_cached;
}

/* Encodes and computes. On success *r is the answer and *content describes it, its text in *r. */
static clef_status compute_answer(decision *d, str body, uint32_t n_questions, reply *r,
                                  kept_content *content, clef_error *err) {
    service *s = d->s;
    call *c = d->c;
    job j = {0};
    clef_answer *answer = NULL;
    clef_error why = {0};
    engine_call asked = {.began = cpu_seconds()};
    clef_status status = engine_encode(&j, s->engine, &d->ask, &asked, body, &why);
    if (status == CLEF_OK) {
        status = engine_answer(s->engine, &d->ask, &asked, &j, 1, &answer);
        why = j.item.err;
        /* An encoded request is no longer too long: what it exceeds is the memory of this moment.
         */
        if (status == CLEF_ERR_LIMIT) why.status = CLEF_ERR_MEMORY;
    }
    arena_free(&j.mem);
    if (status != CLEF_OK) {
        decide_failed(s, r, &why, NULL);
        *err = why;
        return status;
    }
    clef_ask_stats stats;
    clef_answer_stats(answer, &stats);
    *content = (kept_content){.n_questions = n_questions,
                              .n_tokens = (uint32_t)stats.tokens,
                              .n_cached = (uint32_t)stats.cached_tokens};
    content->json = clef_answer_json(answer, &content->json_len);
    answer_with(c, r, content);
    content->json = r->body.p;
    c->queue_s = stats.queue_s;
    c->encode_s = stats.encode_s;
    c->model_s = stats.prefill_s;
    clef_answer_free(answer);
    atomic_fetch_add(&s->counts.questions, n_questions);
    atomic_fetch_add(&s->counts.prompt_tokens, stats.tokens);
    atomic_fetch_add(&s->counts.cached_tokens, stats.cached_tokens);
    return buf_status(&r->body, err);
}

/* Everything that the answer's bytes depend on; keys never share an answer. */
static clef_status answer_key(char key[DIGEST_HEX], const decision *d, str body, clef_error *err) {
    digest *sum = NULL;
    char settings[160];
    const clef_ask_options *o = &d->ask;
    const int n = snprintf(settings, sizeof settings, "%zu %u %d %u %d %d %d %u|", d->c->key,
                           o->max_length, o->cap_state, o->max_state_tokens, (int)o->truncate,
                           (int)o->control_tokens, (int)o->confidence, o->digits);
    TRY(digest_open(&sum, err));
    digest_add(sum, settings, (size_t)n);
    digest_add(sum, body.p, body.n);
    const clef_status s = digest_finish(sum, key, err);
    digest_close(sum);
    return s;
}

/* Waits for an equal request to finish. False when the client has left or the server ends. */
static bool wait_for_equal(decision *d, answer_state *state) {
    const double look_again_s = 0.05;
    while (*state == ANSWER_WAIT) {
        *state = answers_wait(d->s->kept, d->kept, look_again_s);
        if (*state == ANSWER_WAIT &&
            (atomic_load(&d->s->cancel) || (d->c->gone != NULL && d->c->gone(d->c->gone_user))))
            return false;
    }
    return true;
}

static void lead(decision *d, str body, uint32_t n_questions, reply *r) {
    service *s = d->s;
    kept_content content;
    clef_error why = {0};
    atomic_fetch_add(&s->counts.cache_misses, 1);
    if (compute_answer(d, body, n_questions, r, &content, &why) == CLEF_OK)
        answers_finish(s->kept, d->kept, &content);
    else
        answers_fail(s->kept, d->kept, &why);
}

/* With the kept answers. An equal request that was cancelled leaves the work to the next one. */
static void ask_kept(decision *d, const char key[DIGEST_HEX], str body, uint32_t n_questions,
                     reply *r) {
    service *s = d->s;
    bool again;
    do {
        again = false;
        answer_state state;
        d->kept = answers_begin(s->kept, key, &state);
        if (d->kept == NULL) {
            reply_error(r, 503, reply_error_type(503), "The server is short of memory");
            return;
        }
        if (state == ANSWER_LEAD) {
            lead(d, body, n_questions, r);
        } else {
            atomic_fetch_add(state == ANSWER_WAIT ? &s->counts.merged : &s->counts.cache_hits, 1);
            const bool stayed = wait_for_equal(d, &state);
            if (!stayed) {
                const clef_error stop = {.status = CLEF_ERR_CANCELLED};
                decide_failed(s, r, &stop, NULL);
            } else if (state == ANSWER_READY) {
                const kept_content content = answers_content(d->kept);
                answer_with(d->c, r, &content);
                d->c->from_cache = true;
            } else if (answers_error(d->kept)->status == CLEF_ERR_CANCELLED) {
                again = !atomic_load(&s->cancel);
                if (!again) decide_failed(s, r, answers_error(d->kept), NULL);
            } else {
                decide_failed(s, r, answers_error(d->kept), NULL);
            }
        }
        answers_release(s->kept, d->kept);
        d->kept = NULL;
    } while (again);
}

static void ask(service *s, call *c, const checked *q, str body, uint32_t n_questions, reply *r) {
    decision d;
    decide_begin(&d, s, c, q);
    if (s->kept == NULL) {
        kept_content content;
        clef_error why = {0};
        compute_answer(&d, body, n_questions, r, &content, &why);
        return;
    }
    char key[DIGEST_HEX];
    clef_error why = {0};
    if (answer_key(key, &d, body, &why) != CLEF_OK) {
        decide_failed(s, r, &why, NULL);
        return;
    }
    ask_kept(&d, key, body, n_questions, r);
}

/* A parsed body to its answer. */
static void decide_tree(service *s, call *c, const json *root, str path_model, reply *r) {
    checked q;
    problems found = {0};
    buf body = {0};
    clef_error why = {0};
    if (!check_request(&q, root, NULL, &s->rules.limits, &found)) {
        reply_invalid(r, &found.list);
    } else if (decide_model(s, &q, path_model, r) && decide_ready(s, r)) {
        if (check_write(&body, &q, s->rules.names.served, &why) == CLEF_OK)
            ask(s, c, &q, (str){body.p, body.n}, q.questions->n, r);
        else
            decide_failed(s, r, &why, NULL);
    }
    buf_free(&body);
    buf_free(&found.list);
}

/* The most that the values of a body can take. Every value stands behind a comma or an opening
 * bracket, or is the first; each is there twice, because the library parses what is asked of it
 * once more. */
static size_t tree_bytes(str body, size_t ceiling) {
    size_t n = 1;
    for (size_t i = 0; i < body.n; i++)
        n += body.p[i] == ',' || body.p[i] == '[' || body.p[i] == '{';
    const size_t once = n * sizeof(json);
    return 2 * (once < ceiling ? once : ceiling);
}

const json *decide_parse(service *s, call *c, arena *mem, reply *r) {
    const json *root = NULL;
    problems found = {0};
    clef_error why = {0};
    if (!service_hold(s, c, tree_bytes(c->body, s->rules.limits.max_tree_bytes))) {
        clef_fail_memory(&why);
        decide_failed(s, r, &why, NULL);
        return NULL;
    }
    if (check_parse(&root, c->body, &s->rules.limits, mem, &found, &why) != CLEF_OK)
        decide_failed(s, r, &why, NULL);
    else if (found.n > 0)
        reply_invalid(r, &found.list);
    buf_free(&found.list);
    return root;
}

void decide(service *s, call *c, reply *r) {
    arena mem = {0};
    const json *root = decide_parse(s, c, &mem, r);
    if (root != NULL) decide_tree(s, c, root, (str){NULL, 0}, r);
    arena_free(&mem);
}

/* ---- dialects and the envelope ------------------------------------------------------------- */

/* The protocol that a body seems to be written in, or NULL for this server's own. */
static const char *other_dialect(const json *root) {
    const json *questions = json_get(root, STR("questions"));
    if (root->kind != JSON_OBJECT || json_get(root, STR("state")) != NULL) return NULL;
    if (questions == NULL || questions->kind != JSON_ARRAY || questions->n == 0) return NULL;
    if (json_get(questions->first, STR("name")) != NULL) return "OpenAI's decisions";
    if (json_get(questions->first, STR("id")) != NULL) return "SGLang's decisions";
    return NULL;
}

void decide_by_dialect(service *s, call *c, reply *r) {
    arena mem = {0};
    const json *root = decide_parse(s, c, &mem, r);
    const char *dialect = root == NULL ? NULL : other_dialect(root);
    if (dialect != NULL) {
        const check_place at = {NULL, STR("questions"), 0};
        problems found = {0};
        problem_add(&found, &at, "object_type",
                    "this looks like %s body; wanted a System One body: \"model\", \"state\", and "
                    "\"questions\" as an object of id to question",
                    dialect);
        reply_invalid(r, &found.list);
        buf_free(&found.list);
    } else if (root != NULL) {
        decide_tree(s, c, root, (str){NULL, 0}, r);
    }
    arena_free(&mem);
}

static int envelope_code(int status) {
    static const struct {
        int status, code;
    } CODES[] = {{401, 10000}, {404, 7000}, {405, 7001}, {429, 3040}, {500, 5000}, {503, 3040}};
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (CODES[i].status == status) return CODES[i].code;
    return 5004;
}

/* The messages of an error body, one line. */
static void add_messages(buf *out, const json *detail) {
    if (detail != NULL && detail->kind == JSON_OBJECT) {
        const json *message = json_get(detail, STR("message"));
        if (message != NULL) buf_add_str(out, message->text);
        return;
    }
    for (const json *p = detail == NULL ? NULL : detail->first; p != NULL; p = p->next) {
        if (out->n > 0) buf_add_text(out, "; ");
        const json *loc = json_get(p, STR("loc")), *msg = json_get(p, STR("msg"));
        const char *dot = "";
        for (const json *l = loc->first->next; l != NULL; l = l->next) {
            buf_add_text(out, dot);
            buf_add_str(out, l->text);
            dot = ".";
        }
        if (*dot != '\0') buf_add_text(out, ": ");
        buf_add_str(out, msg->text);
    }
}

static void wrap_error(reply *r) {
    arena mem = {0};
    const json *root = NULL;
    buf message = {0}, wrapped = {0};
    const str body = {r->body.p, r->body.n};
    if (json_parse(&root, body, "error", &(json_limits){0}, &mem, NULL) == CLEF_OK)
        add_messages(&message, json_get(root, STR("detail")));
    buf_printf(&wrapped,
               "{\"success\": false, \"result\": null, \"errors\": [{\"code\": %d, "
               "\"message\": ",
               envelope_code(r->status));
    pyjson_string(&wrapped, (str){message.p, message.n});
    buf_add_text(&wrapped, "}], \"messages\": []}");
    if (message.failed || root == NULL) wrapped.failed = true;
    buf_free(&message);
    arena_free(&mem);
    buf_free(&r->body);
    r->body = wrapped;
}

void decide_wrap(reply *r) {
    if (r->status != 200) {
        wrap_error(r);
        return;
    }
    buf wrapped = {0};
    buf_add_text(&wrapped, "{\"success\": true, \"result\": ");
    buf_add(&wrapped, r->body.p, r->body.n);
    buf_add_text(&wrapped, ", \"errors\": [], \"messages\": []}");
    if (r->body.failed) wrapped.failed = true;
    buf_free(&r->body);
    r->body = wrapped;
}

/* The last segment of the path, whose slashes may be encoded, names the model when the body does
 * not. */
static str path_model(str path) {
    while (path.n > 0 && path.p[path.n - 1] == '/') path.n--;
    size_t at = path.n;
    while (at > 0 && path.p[at - 1] != '/' &&
           !(at >= 3 && strncasecmp(path.p + at - 3, "%2F", 3) == 0))
        at--;
    return (str){path.p + at, path.n - at};
}

void decide_enveloped(service *s, call *c, reply *r) {
    arena mem = {0};
    const json *root = decide_parse(s, c, &mem, r);
    if (root != NULL) decide_tree(s, c, root, path_model(c->path), r);
    arena_free(&mem);
    decide_wrap(r);
}
