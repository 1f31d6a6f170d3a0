/* queue_test.c - many requests to one engine: who runs when, who is refused, who gives up, and that
 * none of it changes a bit. Threads wait for each other's progress, never for the clock, except
 * where time is the subject. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clef.h"

static const char toy[] = TESTDATA "toy-two-layers";
static const char short_request[] =
    "{\"model\":\"m\",\"state\":{\"subject\":\"Card charged twice\"},\"questions\":{\"angry\":{"
    "\"type\":\"noul\"},\"queue\":{\"type\":\"choice\",\"criteria\":{\"tech\":\"Faults\","
    "\"billing\":\"Charges\"}}}}";

static clef_engine *open_toy(clef_options options) {
    clef_engine *e = NULL;
    clef_error err = {0};
    options.model = toy;
    if (options.threads == 0) options.threads = 2;
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static char *long_request(unsigned words) {
    char *text = malloc(256 + (size_t)words * 8);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "{\"model\":\"m\",\"state\":\"");
    for (unsigned i = 0; i < words; i++) n += (size_t)sprintf(text + n, "word%u ", i % 97);
    sprintf(text + n, "\",\"questions\":{\"q%u\":{\"type\":\"noul\"}}}", words);
    return text;
}

static void pause_s(double seconds) {
    const struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- a request on a thread of its own ---- */

typedef struct {
    clef_engine *e;
    const char *body;
    clef_ask_options options;
    clef_answer *answer;
    clef_error err;
    clef_status status;
    atomic_bool done;
    pthread_t thread;
} asker;

static void *ask_on_thread(void *context) {
    asker *me = context;
    me->status = clef_ask(me->e, &me->options, me->body, strlen(me->body), &me->answer, &me->err);
    atomic_store(&me->done, true);
    return NULL;
}

static void start(asker *a) {
    assert_int_equal(pthread_create(&a->thread, NULL, ask_on_thread, a), 0);
}

static void join(asker *a) {
    assert_int_equal(pthread_join(a->thread, NULL), 0);
}

static void same_bits(const clef_answer *a, const clef_answer *b) {
    size_t na = 0, nb = 0;
    const clef_option *x = clef_answer_options(a, &na), *y = clef_answer_options(b, &nb);
    assert_int_equal(na, nb);
    for (size_t i = 0; i < na; i++)
        assert_memory_equal(&x[i].logit, &y[i].logit, sizeof x[i].logit);
    assert_string_equal(clef_answer_json(a, NULL), clef_answer_json(b, NULL));
}

/* The answer of an engine that has nothing else to do. */
static clef_answer *answer_alone(const char *body) {
    clef_engine *e = open_toy((clef_options){0});
    clef_answer *a = NULL;
    assert_int_equal(clef_ask(e, NULL, body, strlen(body), &a, NULL), CLEF_OK);
    clef_close(e);
    return a;
}

static void expect_answer(asker *a) {
    if (a->status != CLEF_OK) fail_msg("%s", a->err.text);
    clef_answer *alone = answer_alone(a->body);
    same_bits(a->answer, alone);
    clef_answer_free(alone);
    clef_answer_free(a->answer);
}

static void wait_for(clef_engine *e, uint32_t waiting, uint32_t running) {
    for (clef_load load = {0};; pause_s(0.001)) {
        clef_engine_stats(e, &load);
        if (load.waiting == waiting && load.running == running) return;
    }
}

/* A progress callback that holds its request between two steps. */
typedef struct {
    size_t hold_at, seen;
    atomic_bool held, go;
    int result;
} holder;

static int hold(void *user, size_t done, size_t total) {
    holder *h = user;
    (void)total;
    h->seen = done;
    if (done < h->hold_at) return 0;
    atomic_store(&h->held, true);
    while (!atomic_load(&h->go)) pause_s(0.001);
    return h->result;
}

static void wait_held(holder *h) {
    while (!atomic_load(&h->held)) pause_s(0.001);
}

/* ---- fairness ---- */

static void a_short_request_starts_with_the_next_step_of_a_long_one(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.chunk = 64});
    char *body = long_request(1500);
    holder h = {.hold_at = 1500}; /* near its end, however late the short one's thread begins */
    asker slow = {.e = e, .body = body, .options = {.progress = hold, .user = &h}};
    asker quick = {.e = e, .body = short_request};
    start(&slow);
    for (clef_load load = {0}; load.steps < 2; pause_s(0.001)) clef_engine_stats(e, &load);
    start(&quick);
    join(&quick);
    clef_load load;
    clef_engine_stats(e, &load);
    assert_int_equal(load.running, 1); /* the long one goes on */
    clef_ask_stats stats;
    assert_int_equal(quick.status, CLEF_OK);
    clef_answer_stats(quick.answer, &stats);
    assert_true(stats.queue_steps <= 1); /* the one that was under way */
    expect_answer(&quick);
    atomic_store(&h.go, true);
    join(&slow);
    expect_answer(&slow);
    free(body);
    clef_close(e);
}

/* Rows of the oldest request in each of its steps. */
typedef struct {
    size_t done, total, least;
} shares;

static int watch_shares(void *user, size_t done, size_t total) {
    shares *s = user;
    if (done > s->done && done < total && done - s->done < s->least) s->least = done - s->done;
    s->done = done;
    s->total = total;
    return 0;
}

static void *ask_until_done(void *context) {
    const asker *slow = context;
    while (!atomic_load(&slow->done)) {
        clef_answer *a = NULL;
        if (clef_ask(slow->e, NULL, short_request, strlen(short_request), &a, NULL) != CLEF_OK)
            return context;
        clef_answer_free(a);
    }
    return NULL;
}

static void short_requests_leave_half_of_each_step_to_the_oldest(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.chunk = 65});
    char *body = long_request(400);
    shares s = {.least = SIZE_MAX};
    for (int tries = 0; s.least > 33; tries++) { /* until a step was shared */
        assert_true(tries < 1000);
        s.done = 0;
        asker slow = {.e = e, .body = body, .options = {.progress = watch_shares, .user = &s}};
        start(&slow);
        pthread_t others[3];
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&others[i], NULL, ask_until_done, &slow), 0);
        for (int i = 0; i < 3; i++) {
            void *failed = NULL;
            pthread_join(others[i], &failed);
            assert_null(failed);
        }
        join(&slow);
        assert_int_equal(s.done, s.total);
        assert_true(s.least >= 32); /* never more than by half */
        expect_answer(&slow);
    }
    free(body);
    clef_close(e);
}

static void a_callback_that_takes_long_holds_up_nobody_else(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.chunk = 64});
    holder h = {.hold_at = 64};
    char *body = long_request(100);
    asker held = {.e = e, .body = body, .options = {.progress = hold, .user = &h}};
    asker other = {.e = e, .body = short_request};
    start(&held);
    wait_held(&h);
    start(&other);
    join(&other);
    expect_answer(&other);
    atomic_store(&h.go, true);
    join(&held);
    expect_answer(&held);
    free(body);
    clef_close(e);
}

/* ---- bounds ---- */

/* A request that is held, and nothing may run beside it. */
typedef struct {
    clef_engine *e;
    holder h;
    asker first;
} jam;

static void make_jam(jam *j, uint32_t queue) {
    *j = (jam){.e = open_toy((clef_options){.chunk = 64, .queue = queue, .batch_tokens = 1}),
               .h = {.hold_at = 64}};
    j->first =
        (asker){.e = j->e, .body = short_request, .options = {.progress = hold, .user = &j->h}};
    start(&j->first);
    wait_held(&j->h);
}

static void end_jam(jam *j) {
    atomic_store(&j->h.go, true);
    join(&j->first);
    expect_answer(&j->first);
    clef_close(j->e);
}

static void a_full_queue_refuses_at_once_and_takes_the_next_when_it_moved(void **state) {
    (void)state;
    jam j;
    make_jam(&j, 2);
    asker waiting[2];
    for (int i = 0; i < 2; i++) {
        waiting[i] = (asker){.e = j.e, .body = short_request};
        start(&waiting[i]);
    }
    wait_for(j.e, 2, 1);
    clef_answer *a = NULL;
    clef_error err = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(clef_ask(j.e, NULL, short_request, strlen(short_request), &a, &err),
                         CLEF_ERR_BUSY);
    assert_null(a);
    assert_non_null(strstr(err.text, "2 requests wait"));
    /* What is wrong is told before the queue is looked at. */
    assert_int_equal(clef_ask(j.e, NULL, "{", 1, &a, &err), CLEF_ERR_INPUT);
    clef_load load;
    clef_engine_stats(j.e, &load);
    assert_int_equal(load.refused, 3);
    atomic_store(&j.h.go, true);
    for (int i = 0; i < 2; i++) {
        join(&waiting[i]);
        expect_answer(&waiting[i]);
    }
    assert_int_equal(clef_ask(j.e, NULL, short_request, strlen(short_request), &a, &err), CLEF_OK);
    clef_answer_free(a);
    clef_engine_stats(j.e, &load);
    assert_int_equal(load.waiting + load.running, 0);
    assert_int_equal(load.answered, 4);
    end_jam(&j);
}

static void a_deadline_ends_a_request_that_waits(void **state) {
    (void)state;
    jam j;
    make_jam(&j, 0);
    asker late = {.e = j.e, .body = short_request, .options = {.timeout_s = 0.02}};
    start(&late);
    join(&late);
    assert_int_equal(late.status, CLEF_ERR_DEADLINE);
    assert_non_null(strstr(late.err.text, "no answer within 0.02 seconds: 0 of "));
    clef_load load;
    clef_engine_stats(j.e, &load);
    assert_int_equal(load.waiting, 0);
    assert_int_equal(load.expired, 1);
    end_jam(&j);
}

static int take_long(void *user, size_t done, size_t total) {
    (void)user;
    (void)total;
    if (done > 0) pause_s(0.1);
    return 0;
}

static void a_deadline_ends_a_request_that_runs(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.chunk = 64});
    char *body = long_request(100);
    asker late = {.e = e, .body = body, .options = {.timeout_s = 0.05, .progress = take_long}};
    start(&late);
    join(&late);
    assert_int_equal(late.status, CLEF_ERR_DEADLINE);
    assert_null(late.answer);
    asker next = {.e = e, .body = short_request, .options = {.timeout_s = 1e300}};
    start(&next);
    join(&next);
    expect_answer(&next);
    free(body);
    clef_close(e);
}

static void a_timeout_that_is_no_time_is_refused(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){0});
    static const double wrong[] = {-1, (double)(0.0f / 0.0f)};
    for (int i = 0; i < 2; i++) {
        clef_answer *a = NULL;
        clef_error err = {0};
        const clef_ask_options options = {.timeout_s = wrong[i]};
        assert_int_equal(clef_ask(e, &options, short_request, strlen(short_request), &a, &err),
                         CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, "timeout_s"));
    }
    clef_close(e);
}

static int stop_at_second_call(void *user, size_t done, size_t total) {
    (void)total;
    assert_int_equal(done, 0);
    return ++*(int *)user == 2;
}

static void a_callback_stops_a_request_that_waits(void **state) {
    (void)state;
    jam j;
    make_jam(&j, 0);
    int calls = 0;
    asker gone = {.e = j.e,
                  .body = short_request,
                  .options = {.progress = stop_at_second_call, .user = &calls}};
    start(&gone);
    join(&gone);
    assert_int_equal(gone.status, CLEF_ERR_CANCELLED);
    assert_int_equal(calls, 2);
    clef_load load;
    clef_engine_stats(j.e, &load);
    assert_int_equal(load.waiting, 0);
    assert_int_equal(load.cancelled, 1);
    end_jam(&j);
}

/* Goes on when another request has ended. */
static int run_until_gone(void *user, size_t done, size_t total) {
    const asker *other = user;
    (void)total;
    while (done > 0 && !atomic_load(&other->done)) pause_s(0.001);
    return 0;
}

static void closing_fails_what_waits_and_what_runs(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.chunk = 64, .batch_tokens = 1});
    char *body = long_request(100);
    asker askers[3];
    askers[0] = (asker){.e = e, .body = body, .options = {.progress = run_until_gone}};
    askers[0].options.user = &askers[1];
    askers[1] = (asker){.e = e, .body = short_request};
    askers[2] = (asker){.e = e, .body = short_request, .options = {.timeout_s = 1000}};
    start(&askers[0]);
    wait_for(e, 0, 1);
    for (int i = 1; i < 3; i++) start(&askers[i]);
    wait_for(e, 2, 1);
    clef_close(e);
    for (int i = 0; i < 3; i++) {
        join(&askers[i]);
        assert_int_equal(askers[i].status, CLEF_ERR_CANCELLED);
        assert_string_equal(askers[i].err.text, "the engine is being closed");
    }
    free(body);
}

/* ---- everything at once ---- */

enum { N_THREADS = 16, N_ROUNDS = 6, N_BODIES = 5 };

typedef struct {
    clef_engine *e;
    char **bodies;
    clef_answer **answers;
    unsigned seed, wrong, answered;
} mixed;

static int stop_soon(void *user, size_t done, size_t total) {
    (void)user;
    return done > total / 3;
}

static bool equals(const clef_answer *a, const clef_answer *b) {
    return strcmp(clef_answer_json(a, NULL), clef_answer_json(b, NULL)) == 0;
}

/* One request of each kind in turn: right, wrong, late, stopped, a batch. */
static void ask_one(mixed *me, unsigned i) {
    const unsigned which = (me->seed * 7 + i) % N_BODIES;
    const char *body = me->bodies[which];
    static const char *const keys[] = {"one", "two"};
    clef_ask_options options = {.cache_key = keys[i % 2], .cache_key_len = 3};
    clef_answer *a = NULL;
    clef_status s;
    switch ((me->seed + i) % 6) {
    case 0:
        s = clef_ask(me->e, NULL, "{\"model\":1}", 11, &a, NULL);
        me->wrong += s != CLEF_ERR_INPUT;
        break;
    case 1:
        options.timeout_s = 1e-9;
        s = clef_ask(me->e, &options, body, strlen(body), &a, NULL);
        me->wrong += s != CLEF_ERR_DEADLINE && s != CLEF_ERR_BUSY;
        break;
    case 2:
        options.progress = stop_soon;
        s = clef_ask(me->e, &options, body, strlen(body), &a, NULL);
        me->wrong += s != CLEF_ERR_CANCELLED && s != CLEF_ERR_BUSY;
        break;
    case 3: {
        const clef_request two[] = {{body, strlen(body)}, {"[]", 2}};
        clef_answer *out[2];
        clef_error errs[2];
        clef_ask_batch(me->e, &options, two, 2, out, errs);
        a = out[0];
        me->wrong += out[1] != NULL || (a == NULL && errs[0].status != CLEF_ERR_BUSY);
        break;
    }
    default:
        s = clef_ask(me->e, &options, body, strlen(body), &a, NULL);
        me->wrong += s != CLEF_OK && s != CLEF_ERR_BUSY;
    }
    if (a != NULL) {
        me->answered++;
        me->wrong += !equals(a, me->answers[which]);
    }
    clef_answer_free(a);
}

static void *ask_mixed(void *context) {
    mixed *me = context;
    for (unsigned i = 0; i < N_ROUNDS; i++) ask_one(me, i);
    return NULL;
}

static void sixteen_threads_with_mixed_requests_get_the_serial_answers(void **state) {
    (void)state;
    char *bodies[N_BODIES];
    clef_answer *answers[N_BODIES];
    for (unsigned i = 0; i < N_BODIES; i++) {
        bodies[i] = long_request(i == 4 ? 200 : 10 + 9 * i);
        answers[i] = answer_alone(bodies[i]);
    }
    clef_engine *e = open_toy(
        (clef_options){.chunk = 96, .queue = 12, .batch_tokens = 600, .cache_bytes = 400000});
    pthread_t threads[N_THREADS];
    mixed askers[N_THREADS];
    for (unsigned i = 0; i < N_THREADS; i++) {
        askers[i] = (mixed){.e = e, .bodies = bodies, .answers = answers, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_mixed, &askers[i]), 0);
    }
    uint64_t answered = 0;
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(askers[i].wrong, 0);
        answered += askers[i].answered;
    }
    clef_load load;
    clef_engine_stats(e, &load);
    assert_int_equal(load.answered, answered);
    assert_int_equal(load.failed, 0);
    assert_int_equal(load.waiting + load.running, 0);
    assert_true(answered > 0 && load.cancelled > 0);
    assert_true(load.cache_bytes <= load.cache_max_bytes);
    clef_close(e);
    for (unsigned i = 0; i < N_BODIES; i++) {
        clef_answer_free(answers[i]);
        free(bodies[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_request_starts_with_the_next_step_of_a_long_one),
        cmocka_unit_test(short_requests_leave_half_of_each_step_to_the_oldest),
        cmocka_unit_test(a_callback_that_takes_long_holds_up_nobody_else),
        cmocka_unit_test(a_full_queue_refuses_at_once_and_takes_the_next_when_it_moved),
        cmocka_unit_test(a_deadline_ends_a_request_that_waits),
        cmocka_unit_test(a_deadline_ends_a_request_that_runs),
        cmocka_unit_test(a_timeout_that_is_no_time_is_refused),
        cmocka_unit_test(a_callback_stops_a_request_that_waits),
        cmocka_unit_test(closing_fails_what_waits_and_what_runs),
        cmocka_unit_test(sixteen_threads_with_mixed_requests_get_the_serial_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
