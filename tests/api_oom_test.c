/* api_oom_test.c - memory that runs out behind clef.h: the 1st, 2nd, ... allocation of every call
 * fails until none is left to fail. Each failure is CLEF_ERR_MEMORY, hands nothing out and leaves
 * the engine as it was; leaks are the address sanitizer's to find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clef.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

static const char toy[] = TESTDATA "toy-two-layers";
static const char body[] =
    "{\"model\":\"m\",\"state\":{\"e\\u0301\":[1.5,true]},\"questions\":{\"a\":{\"type\":\"noul\"},"
    "\"b\":{\"type\":\"choice\",\"criteria\":{\"y\":\"Yes\",\"x\":null}},"
    "\"c\":{\"type\":\"score\",\"criteria\":[\"low\",{\"k\":\"high\"}]}}}";

static clef_status open_once(void *context, clef_error *err) {
    (void)context;
    clef_engine *e = NULL;
    const clef_options options = {.model = toy, .threads = 2};
    const clef_status s = clef_open(&e, &options, err);
    assert_true((s == CLEF_OK) == (e != NULL));
    clef_close(e);
    return s;
}

static clef_status info_once(void *context, clef_error *err) {
    const int json = *(const int *)context;
    char *text = NULL;
    int loads = -1;
    const clef_options options = {.model = toy};
    const clef_status s = clef_info(&options, json, &text, &loads, err);
    assert_true((s == CLEF_OK) == (text != NULL));
    assert_int_equal(loads, s == CLEF_OK ? 1 : -1); /* want of memory is no fault of the folder */
    clef_text_free(text);
    return s;
}

static clef_status encode_once(void *context, clef_error *err) {
    clef_answer *a = NULL;
    const clef_status s = clef_encode(context, NULL, body, strlen(body), &a, err);
    assert_true((s == CLEF_OK) == (a != NULL));
    clef_answer_free(a);
    return s;
}

/* A record with a picture and a video, shown without help of the cases in testdata/vision: a gray
 * PNG of 32 x 32 pixels. */
#define PNG                                                                              \
    "\"iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAEklEQVR42mNgGAWjYBSMAuwAAAQgAAF8" \
    "we+4AAAAAElFTkSuQmCC\""
static const char toy_vision[] = TESTDATA "toy-vision";
static const char seen[] =
    "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"noul\"}},"
    "\"images\":[" PNG "," PNG "],\"videos\":[[" PNG "," PNG "," PNG "]]}";

static clef_status see_once(void *context, clef_error *err) {
    clef_answer *a = NULL;
    const clef_status s = clef_ask(context, NULL, seen, strlen(seen), &a, err);
    assert_true((s == CLEF_OK) == (a != NULL));
    clef_answer_free(a);
    return s;
}

/* Three records, the second of which is wrong whatever memory does. */
static clef_status ask_once(void *context, clef_error *err) {
    const clef_request requests[] = {{body, strlen(body)}, {"[]", 2}, {body, strlen(body)}};
    clef_answer *out[3];
    clef_error errs[3];
    clef_ask_batch(context, NULL, requests, 3, out, errs);
    clef_status s = CLEF_OK;
    assert_null(out[1]);
    for (int i = 0; i < 3; i += 2) {
        assert_true((out[i] == NULL) == (errs[i].status != CLEF_OK));
        if (s == CLEF_OK && errs[i].status != CLEF_OK) {
            s = errs[i].status;
            *err = errs[i];
        }
        clef_answer_free(out[i]);
    }
    if (s == CLEF_OK && errs[1].status == CLEF_ERR_MEMORY) {
        s = CLEF_ERR_MEMORY;
        *err = errs[1];
    }
    return s;
}

static void opening_reports_every_failed_allocation(void **state) {
    (void)state;
    assert_true(oom_each(open_once, NULL) > 50);
}

static void info_reports_every_failed_allocation(void **state) {
    (void)state;
    for (int json = 0; json < 2; json++) assert_true(oom_each(info_once, &json) > 50);
}

static void answering_reports_every_failed_allocation(void **state) {
    (void)state;
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = toy, .threads = 2, .chunk = 100};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_true(oom_each(encode_once, e) > 20);
    assert_true(oom_each(ask_once, e) > 40);
    clef_close(e);
}

static void seeing_reports_every_failed_allocation(void **state) {
    (void)state;
    clef_engine *e = NULL;
    clef_error err = {0};
    /* Nothing of a picture is kept, or only the first try would compute it. */
    const clef_options options = {
        .model = toy_vision, .threads = 2, .chunk = 32, .picture_bytes = 1, .cache_bytes = 1};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_true(oom_each(see_once, e) > 60);
    clef_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_reports_every_failed_allocation),
        cmocka_unit_test(info_reports_every_failed_allocation),
        cmocka_unit_test(answering_reports_every_failed_allocation),
        cmocka_unit_test(seeing_reports_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
