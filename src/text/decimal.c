/* decimal.c - doubles from and to decimal digits.
 *
 * strtod and printf would do, were it not for the locale of the program around the library: with a
 * comma for the decimal point both change. So both directions are done here, in integers.
 *
 * Each direction asks on which side of a few decimal or binary fractions a number lies. The
 * question is first put to 128-bit arithmetic with a power of ten that is known to within 3 units
 * of its last bit. Where that cannot tell (a number within 2^-60 of a border, or on it), big
 * integers decide. So no answer rests on an approximation, and the table stays small: a power of
 * ten is the product of 10^(27 j), rounded down to 128 bits, and 5^0 .. 5^26, exact.
 *
 * Reading. The first 19 digits give a lower and an upper bound. If both round to the same double,
 * that is it; otherwise the number is compared with the middle of the two. A middle of two doubles
 * has at most 767 digits, so digits behind the 768th matter only by being there.
 *
 * Writing. value = c * 2^q; every number in the interval around it, half way to its neighbours,
 * reads back as value (the ends only when c is even). Below a power of two the neighbour is only
 * half as far: stepping through %.1e, %.2e, ... misses the shortest at 46 of them. Choose k with
 * 10^k <= width of the interval < 10^(k+1): then the interval holds a multiple of 10^k and at most
 * one multiple of 10^(k+1), which is the shortest where it exists. (R. Giulietti, "The Schubfach
 * way to render doubles", 2020.) */
#include "text/decimal.h"

#include <assert.h>
#include <math.h>

typedef unsigned __int128 u128;

static const uint64_t INFINITE_BITS = (uint64_t)0x7FF << 52;

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value = *c * 2^result, for the bits of a finite double that is not negative. */
static int split_double(uint64_t *c, uint64_t bits) {
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    const int exponent = (int)(bits >> 52);
    *c = exponent == 0 ? fraction : fraction | (uint64_t)1 << 52;
    return (exponent == 0 ? 1 : exponent) - 1075;
}

/* ---- powers of ten ------------------------------------------------------------------------- */

enum { COARSE_STEP = 27, COARSE_FIRST = -13 };

/* 10^(27 j) = (high:low + less than 1) * 2^(floor(log2(10^(27 j))) - 127), j = -13 .. 12. */
static const struct {
    uint64_t high, low;
} coarse[] = {
    {0x8049A4AC0C5811AEU, 0x205B896D777D6278U}, /* 1e-351 */
    {0xCF42894A5DCE35EAU, 0x52064CAC828675B9U}, /* 1e-324 */
    {0xA76C582338ED2621U, 0xAF2AF2B80AF6F24EU}, /* 1e-297 */
    {0x873E4F75E2224E68U, 0x5A7744A6E804A291U}, /* 1e-270 */
    {0xDA7F5BF590966848U, 0xAF39A475506A899EU}, /* 1e-243 */
    {0xB080392CC4349DECU, 0xBD8D794D96AACFB3U}, /* 1e-216 */
    {0x8E938662882AF53EU, 0x547EB47B7282EE9CU}, /* 1e-189 */
    {0xE65829B3046B0AFAU, 0x0CB4A5A3112A5112U}, /* 1e-162 */
    {0xBA121A4650E4DDEBU, 0x92F34D62616CE413U}, /* 1e-135 */
    {0x964E858C91BA2655U, 0x3A6A07F8D510F86FU}, /* 1e-108 */
    {0xF2D56790AB41C2A2U, 0xFAE27299423FB9C3U}, /* 1e-81 */
    {0xC428D05AA4751E4CU, 0xAA97E14C3C26B886U}, /* 1e-54 */
    {0x9E74D1B791E07E48U, 0x775EA264CF55347DU}, /* 1e-27 */
    {0x8000000000000000U, 0x0000000000000000U}, /* 1e0 */
    {0xCECB8F27F4200F3AU, 0x0000000000000000U}, /* 1e27 */
    {0xA70C3C40A64E6C51U, 0x999090B65F67D924U}, /* 1e54 */
    {0x86F0AC99B4E8DAFDU, 0x69A028BB3DED71A3U}, /* 1e81 */
    {0xDA01EE641A708DE9U, 0xE80E6F4820CC9495U}, /* 1e108 */
    {0xB01AE745B101E9E4U, 0x5EC05DCFF72E7F8FU}, /* 1e135 */
    {0x8E41ADE9FBEBC27DU, 0x14588F13BE847307U}, /* 1e162 */
    {0xE5D3EF282A242E81U, 0x8F1668C8A86DA5FAU}, /* 1e189 */
    {0xB9A74A0637CE2EE1U, 0x6D953E2BD7173692U}, /* 1e216 */
    {0x95F83D0A1FB69CD9U, 0x4ABDAF101564F98EU}, /* 1e243 */
    {0xF24A01A73CF2DCCFU, 0xBC633B39673C8CECU}, /* 1e270 */
    {0xC3B8358109E84F07U, 0x0A862F80EC4700C8U}, /* 1e297 */
    {0x9E19DB92B4E31BA9U, 0x6C07A2C26A8346D1U}, /* 1e324 */
};

static const uint64_t power_of_five[COARSE_STEP] = {1U,
                                                    5U,
                                                    25U,
                                                    125U,
                                                    625U,
                                                    3125U,
                                                    15625U,
                                                    78125U,
                                                    390625U,
                                                    1953125U,
                                                    9765625U,
                                                    48828125U,
                                                    244140625U,
                                                    1220703125U,
                                                    6103515625U,
                                                    30517578125U,
                                                    152587890625U,
                                                    762939453125U,
                                                    3814697265625U,
                                                    19073486328125U,
                                                    95367431640625U,
                                                    476837158203125U,
                                                    2384185791015625U,
                                                    11920928955078125U,
                                                    59604644775390625U,
                                                    298023223876953125U,
                                                    1490116119384765625U};

/* a * b / 2^64, rounded down; *rest is what that leaves out, in units of 2^-64. */
static u128 multiply_high(u128 a, uint64_t b, uint64_t *rest) {
    const u128 low = (u128)(uint64_t)a * b;
    *rest = (uint64_t)low;
    return (u128)(uint64_t)(a >> 64) * b + (low >> 64);
}

/* 10^e = (result + error) * 2^*exponent with 2^127 <= result and 0 <= error < 3, for
 * -351 <= e <= 350. The error is 0 for 0 <= e <= 55, as 5^55 < 2^128. */
static u128 power_of_ten(int e, int *exponent) {
    const int j = (e + COARSE_STEP * -COARSE_FIRST) / COARSE_STEP;
    const uint64_t five = power_of_five[e - COARSE_STEP * (j + COARSE_FIRST)];
    const u128 big = (u128)coarse[j].high << 64 | coarse[j].low;
    uint64_t rest;
    u128 product = multiply_high(big, five << __builtin_clzll(five), &rest);
    if (product >> 127 == 0) product = product << 1 | rest >> 63;
    *exponent = (e * 1741647 >> 19) - 127; /* floor(e * log2(10)) - 127, right for these e */
    return product;
}

static bool power_is_exact(int e) {
    return e >= 0 && e <= 55;
}

/* ---- big integers -------------------------------------------------------------------------- */

/* The largest numbers compared are 769 digits against the middle above the smallest double: both
 * stay below 2^3700. */
enum { BIG_LIMBS = 120 };

typedef struct {
    size_t n; /* limbs in use; the last one is not 0 */
    uint32_t limb[BIG_LIMBS];
} big;

static void big_multiply_add(big *b, uint32_t factor, uint32_t add) {
    uint64_t carry = add;
    for (size_t i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry == 0) return;
    assert(b->n < BIG_LIMBS);
    b->limb[b->n++] = (uint32_t)carry;
}

static void big_set(big *b, uint64_t value) {
    b->n = 0;
    for (; value != 0; value >>= 32) b->limb[b->n++] = (uint32_t)value;
}

static void big_multiply_five(big *b, int power) {
    for (; power >= 13; power -= 13) big_multiply_add(b, 1220703125u, 0);
    big_multiply_add(b, (uint32_t)power_of_five[power], 0);
}

static void big_shift_left(big *b, int bits) {
    if (b->n == 0) return;
    big_multiply_add(b, (uint32_t)1 << bits % 32, 0);
    const size_t limbs = (size_t)bits / 32;
    assert(b->n + limbs <= BIG_LIMBS);
    memmove(b->limb + limbs, b->limb, b->n * sizeof *b->limb);
    memset(b->limb, 0, limbs * sizeof *b->limb);
    b->n += limbs;
}

/* The sign of a * 10^p * 2^q - b. Both are changed. */
static int big_compare(big *a, int p, int q, big *b) {
    big_multiply_five(p > 0 ? a : b, p > 0 ? p : -p);
    const int shift = p + q;
    big_shift_left(shift > 0 ? a : b, shift > 0 ? shift : -shift);
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (size_t i = a->n; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

enum { HEAD_DIGITS = 19, DECIDING_DIGITS = 768 };

/* The number is DIGITS * 10^exponent. */
typedef struct {
    const char *first; /* the first digit that is not 0; a point may stand among the digits */
    int64_t n;         /* digits from there on */
    int64_t exponent;
    uint64_t head; /* the first HEAD_DIGITS digits */
    bool more;     /* the head is not all: a digit other than 0 follows */
} decimal;

static decimal scan(const char *p, const char *end) {
    decimal d = {0};
    bool fraction = false;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        const unsigned digit = (unsigned)(*p - '0');
        if (fraction) d.exponent--;
        if (d.n == 0 && digit == 0) continue;
        if (d.n == 0) d.first = p;
        if (d.n < HEAD_DIGITS)
            d.head = d.head * 10 + digit;
        else if (digit != 0)
            d.more = true;
        d.n++;
    }
    if (p == end) return d;
    p++;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    int64_t exponent = 0;
    /* Beyond 10^17 no length of digits that fits in memory makes up for it. */
    for (; p < end; p++)
        if (exponent < 100000000000000000) exponent = exponent * 10 + (*p - '0');
    d.exponent += negative ? -exponent : exponent;
    return d;
}

/* The bits of the double nearest to r * 2^exponent, ties to even, for r >= 2^64. */
static uint64_t round_bits(u128 r, int exponent) {
    const int top = 127 - __builtin_clzll((uint64_t)(r >> 64));
    const int e = top + exponent; /* 2^e <= the number < 2^(e+1) */
    if (e > 1023) return INFINITE_BITS;
    const int keep = e >= -1022 ? 53 : e + 1075; /* subnormals have fewer bits */
    if (keep < 0) return 0;
    const int drop = top + 1 - keep;
    const uint64_t whole = drop == 128 ? 0 : (uint64_t)(r >> drop);
    const u128 half = (u128)1 << (drop - 1);
    const u128 rest = r & (half + (half - 1));
    const bool up = rest > half || (rest == half && whole % 2 == 1);
    /* Adding lets a carry out of the fraction raise the exponent, up to infinity. */
    return whole + up + (e >= -1022 ? (uint64_t)(e + 1022) << 52 : 0);
}

/* The sign of d minus the middle between the double `bits` and the next one up. */
static int compare_middle(const decimal *d, uint64_t bits) {
    const int64_t used = d->n < DECIDING_DIGITS ? d->n : DECIDING_DIGITS;
    int64_t exponent = d->exponent + (d->n - used);
    big digits = {0}, middle;
    const char *p = d->first;
    for (int64_t i = 0; i < used; p++) {
        if (*p == '.') continue;
        big_multiply_add(&digits, 10, (uint32_t)(*p - '0'));
        i++;
    }
    bool tail = false;
    for (int64_t i = used; i < d->n && !tail; p++) {
        if (*p == '.') continue;
        tail = *p != '0';
        i++;
    }
    if (tail) {
        big_multiply_add(&digits, 10, 1);
        exponent--;
    }
    uint64_t c;
    const int q = split_double(&c, bits);
    big_set(&middle, 2 * c + 1);
    return big_compare(&digits, (int)exponent, 1 - q, &middle);
}

static uint64_t read_bits(const decimal *d) {
    const int64_t point = d->exponent + d->n; /* 10^(point-1) <= the number < 10^point */
    if (d->n == 0 || point < -323) return 0;
    if (point > 309) return INFINITE_BITS;
    const int64_t head_n = d->n < HEAD_DIGITS ? d->n : HEAD_DIGITS;
    int exponent;
    const u128 power = power_of_ten((int)(point - head_n), &exponent);
    const uint64_t above = d->head + d->more;
    const int shift = __builtin_clzll(above);
    uint64_t rest;
    const u128 least = multiply_high(power, d->head << shift, &rest);
    const u128 most = multiply_high(power, above << shift, &rest) + 4;
    const uint64_t low = round_bits(least, exponent + 64 - shift);
    const uint64_t high = round_bits(most, exponent + 64 - shift);
    if (low == high) return low;
    const int side = compare_middle(d, low);
    return side > 0 || (side == 0 && low % 2 == 1) ? low + 1 : low;
}

double decimal_read(str spelling) {
    const char *p = spelling.p, *end = p + spelling.n;
    const bool negative = p < end && *p == '-';
    const decimal d = scan(p + negative, end);
    const double value = double_of(read_bits(&d));
    return negative ? -value : value;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* What is needed to compare x * 2^(q-2), for integers x, with multiples of 10^k. */
typedef struct {
    int q, k;
    u128 power;        /* of 10^-k */
    int fraction_bits; /* of x * power / 2^64, as a multiple of 10^k */
} scale;

/* The sign of x * 2^(q-2) - n * 10^k. */
static int compare(const scale *s, uint64_t x, uint64_t n) {
    uint64_t rest;
    const u128 least = multiply_high(s->power, x, &rest);
    const u128 want = (u128)n << s->fraction_bits;
    if (power_is_exact(-s->k)) {
        if (want != least) return want < least ? 1 : -1;
        return rest != 0;
    }
    if (want < least) return 1;
    if (want >= least + 2) return -1; /* x < 2^58, so 3 units of the power are below 2^64 */
    big a, b;
    big_set(&a, x);
    big_set(&b, n);
    return big_compare(&a, -s->k, s->q - 2, &b);
}

/* The multiple of 10^s->k, in units of it, that stands for c * 2^q. */
static uint64_t choose_multiple(const scale *s, uint64_t c, bool irregular) {
    const uint64_t low = 4 * c - (irregular ? 1 : 2), middle = 4 * c, high = 4 * c + 2;
    const int end = c % 2 == 0 ? 0 : 1; /* the ends of the interval belong to it when c is even */
    uint64_t rest;
    uint64_t n = (uint64_t)(multiply_high(s->power, middle, &rest) >> s->fraction_bits);
    if (compare(s, middle, n + 1) >= 0) n++; /* now n <= value < n + 1 */
    const uint64_t tens = n - n % 10;
    if (compare(s, low, tens) <= -end) return tens;
    if (compare(s, high, tens + 10) >= end) return tens + 10;
    const bool below = compare(s, low, n) <= -end, above = compare(s, high, n + 1) >= end;
    if (below != above) return below ? n : n + 1;
    const int side = compare(s, 2 * middle, 2 * n + 1);
    return side > 0 || (side == 0 && n % 2 == 1) ? n + 1 : n;
}

size_t decimal_shortest(char digits[DECIMAL_MAX_DIGITS], int *point, double value) {
    assert(value > 0 && isfinite(value));
    uint64_t bits, c;
    memcpy(&bits, &value, sizeof bits);
    const int q = split_double(&c, bits);
    const bool irregular = c == (uint64_t)1 << 52 && bits >> 52 > 1;
    /* floor(log10(2^q)), or of 3/4 * 2^q; right for every q of a double. */
    const int k = (q * 1262611 - (irregular ? 524031 : 0)) >> 22;
    scale s = {.q = q, .k = k};
    int exponent;
    s.power = power_of_ten(-k, &exponent);
    s.fraction_bits = -(exponent + 64 + q - 2);
    uint64_t n = choose_multiple(&s, c, irregular);

    int zeros = 0;
    for (; n % 10 == 0; n /= 10) zeros++;
    size_t n_digits = 0;
    for (uint64_t rest = n; rest != 0; rest /= 10) n_digits++;
    assert(n_digits <= DECIMAL_MAX_DIGITS);
    for (size_t i = n_digits; i-- > 0; n /= 10) digits[i] = (char)('0' + n % 10);
    *point = k + zeros + (int)n_digits;
    return n_digits;
}
