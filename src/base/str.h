/* str.h - text as pointer and length (zero bytes are ordinary), and half-open index ranges. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *p;
    size_t n; /* bytes */
} str;

typedef struct {
    uint32_t begin, end; /* half-open */
} span;

#define STR(literal) ((str){"" literal, sizeof(literal) - 1})
/* The arguments of a "%.*s" conversion. */
#define STR_ARG(s) ((s).n > 4096 ? 4096 : (int)(s).n), ((s).n > 0 ? (s).p : "")

static inline str str_of(const char *zero_terminated) {
    return (str){zero_terminated, strlen(zero_terminated)};
}

static inline bool str_equal(str a, str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The same with the case of ASCII letters left aside. */
static inline bool str_same_word(str a, const char *b) {
    return a.n == strlen(b) && (a.n == 0 || strncasecmp(a.p, b, a.n) == 0);
}

/* Without the white space at both ends. */
static inline str str_trim(str s) {
    while (s.n > 0 && isspace((unsigned char)s.p[0])) s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1])) s.n--;
    return s;
}

/* Byte order, which for UTF-8 is code-point order; a proper prefix comes first. */
static inline int str_compare(str a, str b) {
    const size_t n = a.n < b.n ? a.n : b.n;
    const int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* Sums and products of sizes that come from a file or a client: false on overflow. */
static inline bool size_add(size_t *out, size_t a, size_t b) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool size_mul(size_t *out, size_t a, size_t b) {
    return !__builtin_mul_overflow(a, b, out);
}

#endif
