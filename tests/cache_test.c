/* cache_test.c - what is kept of states, seen from outside: an answer that goes on from a kept
 * state has the bits of one that computed everything, whatever was kept, dropped or shared. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clef.h"
#include "tests/oom.h"

static const char toy[] = TESTDATA "toy-r2";

static clef_engine *open_toy(clef_options options) {
    clef_engine *e = NULL;
    clef_error err = {0};
    options.model = toy;
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static clef_engine *open_cached(void) {
    return open_toy((clef_options){.threads = 2, .chunk = 128, .cache_bytes = 256u << 20});
}

/* A request whose state has some four tokens a word and then `end`; question `name`. */
static char *make_request(unsigned words, const char *end, const char *name) {
    char *text = malloc(256 + (size_t)words * 8 + strlen(end));
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "{\"model\":\"m\",\"state\":\"");
    for (unsigned i = 0; i < words; i++) n += (size_t)sprintf(text + n, "word%u ", i % 97);
    sprintf(text + n,
            "%s\",\"questions\":{\"%s\":{\"type\":\"noul\"},\"urgency\":{\"type\":\"score\","
            "\"criteria\":[\"low\",\"high\"]}}}",
            end, name);
    return text;
}

static clef_answer *ask(clef_engine *e, const char *body, const char *key) {
    clef_answer *a = NULL;
    clef_error err = {0};
    const clef_ask_options options = {.cache_key = key, .cache_key_len = key ? strlen(key) : 0};
    if (clef_ask(e, &options, body, strlen(body), &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    return a;
}

static uint64_t cached(const clef_answer *a) {
    clef_ask_stats s;
    clef_answer_stats(a, &s);
    assert_true(s.cached_tokens < s.tokens);
    return s.cached_tokens;
}

static void same_bits(const clef_answer *a, const clef_answer *b) {
    size_t na = 0, nb = 0;
    const clef_option *x = clef_answer_options(a, &na), *y = clef_answer_options(b, &nb);
    assert_int_equal(na, nb);
    for (size_t i = 0; i < na; i++) {
        assert_memory_equal(&x[i].logit, &y[i].logit, sizeof x[i].logit);
        assert_memory_equal(&x[i].probability, &y[i].probability, sizeof x[i].probability);
    }
    assert_string_equal(clef_answer_json(a, NULL), clef_answer_json(b, NULL));
}

/* An engine that keeps nothing, open for all tests. */
static clef_engine *plain;

static int open_plain(void **state) {
    (void)state;
    plain = open_toy((clef_options){.threads = 2});
    return 0;
}

static int close_plain(void **state) {
    (void)state;
    clef_close(plain);
    return 0;
}

/* Asks and compares with the answer of an engine that keeps nothing; returns the tokens found. */
static uint64_t ask_exactly(clef_engine *e, const char *body, const char *key) {
    clef_answer *a = ask(e, body, key), *alone = ask(plain, body, NULL);
    same_bits(a, alone);
    const uint64_t n = cached(a);
    clef_answer_free(alone);
    clef_answer_free(a);
    return n;
}

static void other_questions_on_a_state_find_it_and_get_the_same_bits(void **state) {
    (void)state;
    static const unsigned words[] = {40, 300, 1200};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *first = make_request(words[i], "", "a"), *second = make_request(words[i], "", "bb");
        clef_engine *e = open_cached();
        assert_int_equal(ask_exactly(e, first, NULL), 0);
        const uint64_t n = ask_exactly(e, second, NULL);
        assert_true(n > 2 * words[i]);
        assert_int_equal(ask_exactly(e, first, NULL), n);
        clef_load load;
        clef_engine_stats(e, &load);
        assert_int_equal(load.cache_hits, 2);
        assert_int_equal(load.cache_misses, 1);
        assert_int_equal(load.cached_tokens, 2 * n);
        clef_close(e);
        free(second);
        free(first);
    }
}

static void
a_hit_has_the_bits_of_a_miss_for_every_chunk_thread_count_and_kernel_table(void **state) {
    (void)state;
    static const uint32_t chunks[] = {5, 64, 512};
    static const char *const tables[] = {NULL, "scalar"};
    char *body = make_request(50, "", "a");
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (unsigned threads = 1; threads <= 3; threads += 2)
            for (int t = 0; t < 2; t++) {
                clef_engine *e = open_toy((clef_options){.threads = threads,
                                                         .chunk = chunks[i],
                                                         .kernels = tables[t],
                                                         .cache_bytes = 64u << 20});
                assert_int_equal(ask_exactly(e, body, NULL), 0);
                assert_true(ask_exactly(e, body, NULL) > 150);
                clef_close(e);
            }
    free(body);
}

static void a_state_that_grew_goes_on_from_near_its_old_end(void **state) {
    (void)state;
    clef_engine *e = open_cached();
    char *body = make_request(400, "", "a"), *grown = make_request(400, "and then some more", "a");
    clef_answer *a = ask(e, body, NULL);
    clef_ask_stats s;
    clef_answer_stats(a, &s);
    clef_answer_free(a);
    const uint64_t n = ask_exactly(e, grown, NULL);
    assert_true(n > s.tokens - 200 && n < s.tokens);
    free(grown);
    free(body);
    clef_close(e);
}

static void a_long_state_that_changes_late_goes_on_from_a_cut_inside(void **state) {
    (void)state;
    clef_engine *e = open_cached();
    char *body = make_request(900, "", "a"), *other = make_request(600, "changed here", "a");
    clef_answer_free(ask(e, body, NULL));
    const uint64_t n = ask_exactly(e, other, NULL);
    assert_int_equal(n, 2048);
    free(other);
    free(body);
    clef_close(e);
}

static void two_keys_never_share(void **state) {
    (void)state;
    clef_engine *e = open_cached();
    char *body = make_request(100, "", "a");
    static const char *const keys[] = {"key-one", "key-two", NULL, "key-on"};
    for (int i = 0; i < 4; i++) assert_int_equal(ask_exactly(e, body, keys[i]), 0);
    for (int i = 0; i < 4; i++) assert_true(ask_exactly(e, body, keys[i]) > 200);
    free(body);
    clef_close(e);
}

static void what_is_kept_stays_below_its_bound(void **state) {
    (void)state;
    const clef_plan_options wanted = {.tokens = 300};
    clef_plan_result plan;
    const clef_options options = {.model = toy, .threads = 1};
    assert_int_equal(clef_plan(&options, &wanted, &plan, NULL), CLEF_OK);
    clef_engine *e = open_toy((clef_options){.threads = 1, .cache_bytes = 4 * plan.prefix_bytes});
    uint64_t found = 0;
    for (unsigned i = 0; i < 40; i++) {
        char end[32];
        snprintf(end, sizeof end, "the %uth", i % 13);
        char *body = make_request(60 + i % 13, end, "a");
        found += ask_exactly(e, body, NULL) > 100;
        clef_load load;
        clef_engine_stats(e, &load);
        assert_true(load.cache_bytes <= load.cache_max_bytes);
        free(body);
    }
    clef_load load;
    clef_engine_stats(e, &load);
    assert_true(load.cache_dropped > 5 && load.cache_entries > 0);
    assert_int_equal(load.cache_stored - load.cache_dropped, load.cache_entries);
    assert_int_equal(found, 0); /* thirteen states in turn, room for fewer: each is gone in time */
    clef_close(e);
}

static void the_least_recently_used_state_goes_first(void **state) {
    (void)state;
    char *bodies[3];
    for (unsigned i = 0; i < 3; i++) bodies[i] = make_request(80 + i, "x", "a");
    clef_engine *probe = open_cached();
    clef_load load;
    clef_answer_free(ask(probe, bodies[0], NULL));
    clef_engine_stats(probe, &load);
    const uint64_t one = load.cache_bytes;
    clef_close(probe);
    clef_engine *e = open_toy((clef_options){.threads = 1, .cache_bytes = 2 * one});
    for (int i = 0; i < 2; i++) clef_answer_free(ask(e, bodies[i], NULL));
    assert_true(ask_exactly(e, bodies[0], NULL) > 100); /* now 1 is the older one */
    clef_answer_free(ask(e, bodies[2], NULL));
    assert_true(ask_exactly(e, bodies[0], NULL) > 100);
    assert_true(ask_exactly(e, bodies[1], NULL) < 100);
    for (int i = 0; i < 3; i++) free(bodies[i]);
    clef_close(e);
}

static void a_cache_too_small_for_anything_changes_nothing(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.threads = 1, .cache_bytes = 1});
    char *body = make_request(100, "", "a");
    for (int i = 0; i < 2; i++) assert_int_equal(ask_exactly(e, body, NULL), 0);
    free(body);
    clef_close(e);
}

static void records_of_one_batch_share_their_state(void **state) {
    (void)state;
    clef_engine *e = open_cached();
    char *bodies[3] = {make_request(200, "", "a"), make_request(200, "", "b"),
                       make_request(200, "", "c")};
    clef_request requests[3];
    clef_answer *out[3];
    for (int i = 0; i < 3; i++) requests[i] = (clef_request){bodies[i], strlen(bodies[i])};
    assert_int_equal(clef_ask_batch(e, NULL, requests, 3, out, NULL), CLEF_OK);
    for (int i = 0; i < 3; i++) {
        clef_answer *alone = ask(plain, bodies[i], NULL);
        same_bits(out[i], alone);
        assert_true(i == 0 ? cached(out[i]) == 0 : cached(out[i]) > 400);
        clef_answer_free(alone);
        clef_answer_free(out[i]);
        free(bodies[i]);
    }
    clef_close(e);
}

typedef struct {
    clef_engine *e;
    const char *body;
    clef_answer *answer;
} asker;

static void *ask_on_thread(void *context) {
    asker *me = context;
    me->answer = ask(me->e, me->body, NULL);
    return NULL;
}

/* The second comes while the first still computes the state. */
static void a_state_that_is_being_computed_is_waited_for(void **state) {
    (void)state;
    clef_engine *e = open_toy((clef_options){.threads = 1, .chunk = 64, .cache_bytes = 64u << 20});
    char *first = make_request(500, "", "a"), *second = make_request(500, "", "b");
    asker ahead = {.e = e, .body = first};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_on_thread, &ahead), 0);
    for (clef_load load = {0}; load.steps < 2; sched_yield()) clef_engine_stats(e, &load);
    assert_true(ask_exactly(e, second, NULL) > 1000);
    pthread_join(thread, NULL);
    clef_answer *alone = ask(plain, first, NULL);
    same_bits(ahead.answer, alone);
    clef_answer_free(alone);
    clef_answer_free(ahead.answer);
    free(second);
    free(first);
    clef_close(e);
}

/* Keeping is a service, not a duty: when memory runs out there, the answer comes all the same. */
static void memory_that_runs_out_never_spoils_an_answer(void **state) {
    (void)state;
    char *body = make_request(60, "", "a");
    clef_answer *alone = ask(plain, body, NULL);
    unsigned answered = 0, failed = 0;
    clef_engine *e = open_toy((clef_options){.threads = 1, .cache_bytes = 64u << 20});
    for (unsigned n = 1, reached = 1; reached; n++) {
        clef_answer *a = NULL;
        clef_error err = {0};
        const clef_ask_options options = {.cache_key = (const char *)&n, .cache_key_len = sizeof n};
        oom_fail_at(n);
        const clef_status s = clef_ask(e, &options, body, strlen(body), &a, &err);
        reached = atomic_load(&oom_left) <= 0;
        oom_stop();
        if (s == CLEF_OK) {
            same_bits(a, alone);
            answered += reached;
        } else {
            assert_int_equal(s, CLEF_ERR_MEMORY);
            failed++;
        }
        clef_answer_free(a);
    }
    clef_load load;
    clef_engine_stats(e, &load);
    assert_int_equal(load.cache_hits, 0);
    clef_close(e);
    assert_true(answered >= 6 && failed > 20);
    clef_answer_free(alone);
    free(body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_questions_on_a_state_find_it_and_get_the_same_bits),
        cmocka_unit_test(
            a_hit_has_the_bits_of_a_miss_for_every_chunk_thread_count_and_kernel_table),
        cmocka_unit_test(a_state_that_grew_goes_on_from_near_its_old_end),
        cmocka_unit_test(a_long_state_that_changes_late_goes_on_from_a_cut_inside),
        cmocka_unit_test(two_keys_never_share),
        cmocka_unit_test(what_is_kept_stays_below_its_bound),
        cmocka_unit_test(the_least_recently_used_state_goes_first),
        cmocka_unit_test(a_cache_too_small_for_anything_changes_nothing),
        cmocka_unit_test(records_of_one_batch_share_their_state),
        cmocka_unit_test(a_state_that_is_being_computed_is_waited_for),
        cmocka_unit_test(memory_that_runs_out_never_spoils_an_answer),
    };
    return cmocka_run_group_tests(tests, open_plain, close_plain);
}
