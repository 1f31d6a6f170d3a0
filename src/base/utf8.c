/* utf8.c - the strict UTF-8 decoder, after the table "well-formed UTF-8 byte sequences" of the
 * Unicode standard: the second byte's range depends on the first. */
#include "base/utf8.h"

#include <string.h>

static int is_tail(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

size_t utf8_decode(uint32_t *point, const char *text, size_t n) {
    const unsigned char *p = (const unsigned char *)text;
    if (n == 0) return 0;
    if (p[0] < 0x80) {
        *point = p[0];
        return 1;
    }
    if (p[0] < 0xC2) return 0; /* a tail byte, or the overlong forms C0 and C1 */
    if (p[0] < 0xE0) {
        if (n < 2 || !is_tail(p[1])) return 0;
        *point = (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (p[0] < 0xF0) {
        if (n < 3 || !is_tail(p[1]) || !is_tail(p[2])) return 0;
        if (p[0] == 0xE0 && p[1] < 0xA0) return 0; /* overlong */
        if (p[0] == 0xED && p[1] > 0x9F) return 0; /* surrogates */
        *point = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    if (p[0] > 0xF4 || n < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) return 0;
    if (p[0] == 0xF0 && p[1] < 0x90) return 0; /* overlong */
    if (p[0] == 0xF4 && p[1] > 0x8F) return 0; /* beyond U+10FFFF */
    *point = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
             (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return 4;
}

size_t utf8_encode(char *p, uint32_t point) {
    if (point < 0x80) {
        p[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        p[0] = (char)(0xC0 | point >> 6);
        p[1] = (char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        p[0] = (char)(0xE0 | point >> 12);
        p[1] = (char)(0x80 | (point >> 6 & 0x3F));
        p[2] = (char)(0x80 | (point & 0x3F));
        return 3;
    }
    p[0] = (char)(0xF0 | point >> 18);
    p[1] = (char)(0x80 | (point >> 12 & 0x3F));
    p[2] = (char)(0x80 | (point >> 6 & 0x3F));
    p[3] = (char)(0x80 | (point & 0x3F));
    return 4;
}

size_t utf8_check(const char *p, size_t n) {
    size_t at = 0;
    while (at < n) {
        uint64_t eight;
        while (n - at >= sizeof eight) { /* ASCII runs, eight bytes at a time */
            memcpy(&eight, p + at, sizeof eight);
            if (eight & 0x8080808080808080u) break;
            at += sizeof eight;
        }
        if (at == n) break;
        uint32_t point;
        const size_t width = utf8_decode(&point, p + at, n - at);
        if (width == 0) return at;
        at += width;
    }
    return n;
}

static const struct {
    uint32_t first, last;
} unsafe[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x61C, 0x61C},
    {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},
    {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
};

bool utf8_is_unsafe(uint32_t point) {
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        if (point >= unsafe[i].first && point <= unsafe[i].last) return true;
    return false;
}
