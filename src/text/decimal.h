/* decimal.h - doubles from and to decimal digits, exactly and whatever the locale. */
#ifndef TEXT_DECIMAL_H
#define TEXT_DECIMAL_H

#include "base/str.h"

enum { DECIMAL_MAX_DIGITS = 17 };

/* The double nearest to the number that `spelling` denotes, ties to even; infinite when it is too
 * large. `spelling` is a JSON number of any length; the time is linear in it. */
double decimal_read(str spelling);

/* The fewest digits that read back as `value` (finite, above zero), of those the nearest to it.
 * Returns how many; value = 0.DIGITS * 10^*point. No final zeros, no terminator. */
size_t decimal_shortest(char digits[DECIMAL_MAX_DIGITS], int *point, double value);

#endif
