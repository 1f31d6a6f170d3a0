/* oom.h - makes the n-th allocation fail, so that a test can show what happens then:
 *
 *     for (unsigned n = 1; s != CLEF_OK; n++) {
 *         oom_fail_at(n);
 *         s = the_call(...);
 *         oom_stop();
 *         if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
 *     }
 *
 * The Makefile links every test that includes this file with -Wl,--wrap for the functions below, so
 * only allocations of our own objects are counted; the C library's inner ones are not. One test
 * program includes it once. */
#ifndef TESTS_OOM_H
#define TESTS_OOM_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_long oom_left; /* allocations until the one that fails; 0 or less: none will */

static inline void oom_fail_at(unsigned n) {
    atomic_store(&oom_left, (long)n);
}

static inline void oom_stop(void) {
    atomic_store(&oom_left, 0);
}

static inline bool oom_now(void) {
    return atomic_load(&oom_left) > 0 && atomic_fetch_sub(&oom_left, 1) == 1;
}

/* The linker's --wrap fixes these names.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);

void *__wrap_malloc(size_t n) {
    return oom_now() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
    return oom_now() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n) {
    return oom_now() ? NULL : __real_realloc(p, n);
}
void *__wrap_aligned_alloc(size_t align, size_t n) {
    return oom_now() ? NULL : __real_aligned_alloc(align, n);
}
int __wrap_posix_memalign(void **out, size_t align, size_t n) {
    return oom_now() ? ENOMEM : __real_posix_memalign(out, align, n);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

#endif
