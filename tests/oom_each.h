/* oom_each.h - fails the 1st, 2nd, ... allocation of a call until none is left to fail. The test
 * includes tests/oom.h itself too, which is what the Makefile looks for. */
#ifndef TESTS_OOM_EACH_H
#define TESTS_OOM_EACH_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/status.h"
#include "tests/oom.h"

/* Does the work once and gives everything back, whether it succeeds or not. */
typedef clef_status oom_call(void *context, clef_error *err);

/* Each failure must be CLEF_ERR_MEMORY, and the last call, in which none failed, CLEF_OK; leaks are
 * the address sanitizer's to find. Returns how many allocations were failed. */
static inline unsigned oom_each(oom_call *call, void *context) {
    for (unsigned n = 1;; n++) {
        clef_error err = {0};
        oom_fail_at(n);
        const clef_status s = call(context, &err);
        const bool failed = atomic_load(&oom_left) <= 0;
        oom_stop();
        if (!failed) {
            assert_int_equal(s, CLEF_OK);
            return n - 1;
        }
        assert_int_equal(s, CLEF_ERR_MEMORY);
        assert_int_equal(err.status, CLEF_ERR_MEMORY);
    }
}

#endif
