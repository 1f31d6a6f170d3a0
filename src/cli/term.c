/* term.c - see term.h. Widths follow Unicode's East Asian Width (W and F) and the combining blocks,
 * by block rather than by character: a rare character may sit a column off, and nothing else
 * depends on it. */
#include "cli/term.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

enum { DEFAULT_WIDTH = 80, MIN_WIDTH = 40, MAX_WIDTH = 200 };

typedef struct {
    uint32_t first, last;
} range;

static const range combining[] = {
    {0x300, 0x36F},   {0x483, 0x489},     {0x591, 0x5BD},     {0x610, 0x61A},   {0x64B, 0x65F},
    {0x93C, 0x93C},   {0x941, 0x948},     {0x94D, 0x94D},     {0xE31, 0xE31},   {0xE34, 0xE3A},
    {0xE47, 0xE4E},   {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF},   {0x20D0, 0x20F0}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};

static const range wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

static bool is_in(const range *table, size_t n, uint32_t point) {
    for (size_t i = 0; i < n; i++)
        if (point >= table[i].first && point <= table[i].last) return true;
    return false;
}
#define IS_IN(table, point) is_in(table, sizeof(table) / sizeof *(table), point)

/* Whether the user's locale is UTF-8. The process itself stays in the C locale, in which numbers
 * are printed. */
static bool locale_is_utf8(void) {
    const locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (user == (locale_t)0) return false;
    const bool utf8 = strcmp(nl_langinfo_l(CODESET, user), "UTF-8") == 0;
    freelocale(user);
    return utf8;
}

term term_of(int fd) {
    term t = {.width = DEFAULT_WIDTH, .blocks = locale_is_utf8()};
    if (!isatty(fd)) return t;
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) t.width = size.ws_col;
    if (t.width < MIN_WIDTH) t.width = MIN_WIDTH;
    if (t.width > MAX_WIDTH) t.width = MAX_WIDTH;
    const char *kind = getenv("TERM"), *plain = getenv("NO_COLOR");
    t.colour = (plain == NULL || *plain == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
    return t;
}

size_t term_columns(str text) {
    size_t columns = 0;
    for (size_t at = 0; at < text.n;) {
        uint32_t point = 0;
        const size_t width = utf8_decode(&point, text.p + at, text.n - at);
        if (!IS_IN(combining, point)) columns += IS_IN(wide, point) ? 2 : 1;
        at += width == 0 ? 1 : width;
    }
    return columns;
}

void term_add_bar(buf *out, const term *t, double share, unsigned columns) {
    /* U+2588 is a full block; U+2589 to U+258F are seven to one eighths of it. */
    const unsigned steps = t->blocks ? 8 : 1;
    unsigned filled = (unsigned)lround(share * columns * steps), used = 0;
    if (filled > columns * steps) filled = columns * steps;
    for (; filled >= steps; filled -= steps, used++) {
        if (t->blocks)
            buf_add_text(out, "\xE2\x96\x88");
        else
            buf_add_char(out, '#');
    }
    if (filled > 0) {
        const char part[] = {'\xE2', '\x96', (char)(0x90 - (int)filled)};
        buf_add(out, part, sizeof part);
        used++;
    }
    for (; used < columns; used++) buf_add_char(out, ' ');
}
