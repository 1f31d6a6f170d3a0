/* answers_test.c - answers kept, shared and given up. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <stdio.h>

#include "base/status.h"
#include "server/answers.h"

static const kept_content CONTENT = {.json = "{}", .json_len = 2, .n_tokens = 9};

static void name_key(char key[DIGEST_HEX], unsigned i) {
    snprintf(key, DIGEST_HEX, "%08x%056u", i * 2654435761u, i);
}

static kept_answer *begin(answers *a, unsigned i, answer_state want) {
    char key[DIGEST_HEX];
    answer_state state = ANSWER_FAILED;
    name_key(key, i);
    kept_answer *k = answers_begin(a, key, &state);
    assert_non_null(k);
    assert_int_equal(state, want);
    return k;
}

static answers *open_answers(size_t bytes, double seconds) {
    answers *a = NULL;
    assert_int_equal(answers_open(&a, bytes, seconds, NULL), CLEF_OK);
    return a;
}

static void keep(answers *a, unsigned i) {
    kept_answer *k = begin(a, i, ANSWER_LEAD);
    answers_finish(a, k, &CONTENT);
    answers_release(a, k);
}

static void a_finished_answer_is_given_again(void **state) {
    (void)state;
    answers *a = open_answers(1 << 20, 100);
    keep(a, 1);
    kept_answer *k = begin(a, 1, ANSWER_READY);
    const kept_content got = answers_content(k);
    assert_string_equal(got.json, "{}");
    assert_int_equal(got.n_tokens, 9);
    answers_release(a, k);
    answers_close(a);
}

static void an_old_answer_is_not(void **state) {
    (void)state;
    answers *a = open_answers(1 << 20, 0);
    keep(a, 1);
    keep(a, 1);
    answers_close(a);
}

static void the_answer_used_longest_ago_makes_room(void **state) {
    (void)state;
    answers *a = open_answers(3 * 600, 100); /* three of them */
    keep(a, 1);
    keep(a, 2);
    keep(a, 3);
    answers_release(a, begin(a, 1, ANSWER_READY));
    keep(a, 4);
    answers_release(a, begin(a, 1, ANSWER_READY));
    answers_release(a, begin(a, 3, ANSWER_READY));
    size_t bytes = 0, entries = 0;
    answers_size(a, &bytes, &entries);
    assert_int_equal(entries, 3);
    assert_true(bytes <= 3 * 600);
    keep(a, 2);
    answers_close(a);
}

static void an_answer_larger_than_all_room_is_still_given_to_who_waits(void **state) {
    (void)state;
    answers *a = open_answers(1, 100);
    kept_answer *k = begin(a, 1, ANSWER_LEAD), *other = begin(a, 1, ANSWER_WAIT);
    answers_finish(a, k, &CONTENT);
    answers_release(a, k);
    assert_int_equal(answers_wait(a, other, 1), ANSWER_READY);
    assert_string_equal(answers_content(other).json, "{}");
    answers_release(a, other);
    keep(a, 1);
    answers_close(a);
}

static void a_failure_is_told_to_who_waits_and_not_kept(void **state) {
    (void)state;
    answers *a = open_answers(1 << 20, 100);
    kept_answer *k = begin(a, 1, ANSWER_LEAD), *other = begin(a, 1, ANSWER_WAIT);
    assert_true(answers_wanted(a, k));
    assert_int_equal(answers_wait(a, other, 0.01), ANSWER_WAIT);
    clef_error why = {0};
    clef_fail(&why, CLEF_ERR_BUSY, "full");
    answers_fail(a, k, &why);
    answers_release(a, k);
    assert_int_equal(answers_wait(a, other, 1), ANSWER_FAILED);
    assert_int_equal(answers_error(other)->status, CLEF_ERR_BUSY);
    answers_release(a, other);
    keep(a, 1);
    answers_close(a);
}

enum { THREADS = 8, ROUNDS = 2000, KEYS = 7 };

static void *use(void *user) {
    static char no_memory[] = "no memory", nobody[] = "nobody finished";
    answers *a = user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char key[DIGEST_HEX];
        answer_state state;
        name_key(key, i % KEYS);
        kept_answer *k = answers_begin(a, key, &state);
        if (k == NULL) return no_memory;
        if (state == ANSWER_LEAD && i % 5 == 0) {
            const clef_error why = {.status = CLEF_ERR_CANCELLED};
            answers_fail(a, k, &why);
        } else if (state == ANSWER_LEAD) {
            answers_finish(a, k, &CONTENT);
        } else if (state == ANSWER_WAIT) {
            state = answers_wait(a, k, 5);
            if (state == ANSWER_WAIT) return nobody;
        }
        answers_release(a, k);
    }
    return NULL;
}

static void many_threads_share_answers(void **state) {
    (void)state;
    answers *a = open_answers(4 * 600, 100); /* some are always being dropped */
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, a), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fault = NULL;
        pthread_join(threads[i], &fault);
        if (fault != NULL) fail_msg("%s", (const char *)fault);
    }
    answers_close(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_answer_is_given_again),
        cmocka_unit_test(an_old_answer_is_not),
        cmocka_unit_test(the_answer_used_longest_ago_makes_room),
        cmocka_unit_test(an_answer_larger_than_all_room_is_still_given_to_who_waits),
        cmocka_unit_test(a_failure_is_told_to_who_waits_and_not_kept),
        cmocka_unit_test(many_threads_share_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
