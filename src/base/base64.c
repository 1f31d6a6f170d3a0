/* base64.c - three bytes as four characters of six bits each, and back. A lenient decoder gives one
 * value many spellings; what is compared or signed wants one, so the decoder here refuses the
 * rest. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

void base64_encode(buf *out, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t group = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)p[i + 2] : 0);
        buf_add_char(out, alphabet[group >> 18]);
        buf_add_char(out, alphabet[group >> 12 & 63]);
        buf_add_char(out, alphabet[left > 1 ? group >> 6 & 63 : 64]);
        buf_add_char(out, alphabet[left > 2 ? group & 63 : 64]);
    }
}

/* The six bits of a character, or 64. */
static uint32_t six_bits(char c) {
    if (c >= 'A' && c <= 'Z') return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z') return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9') return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool base64_decode(buf *out, str text) {
    if (text.n % 4 != 0) return false;
    size_t n = text.n;
    while (n > 0 && text.n - n < 2 && text.p[n - 1] == '=') n--;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        bits = six_bits(text.p[i]);
        if (bits > 63) return false;
    }
    /* What the last character has beyond the last byte: 4 bits before "==", 2 before "=". */
    if (bits & ((1u << 2 * (text.n - n)) - 1)) return false;
    uint32_t group = 0;
    for (size_t i = 0; i < n; i++) {
        group = group << 6 | six_bits(text.p[i]);
        if (i % 4 == 3) {
            buf_add_char(out, (char)(group >> 16 & 255));
            buf_add_char(out, (char)(group >> 8 & 255));
            buf_add_char(out, (char)(group & 255));
        }
    }
    if (n % 4 == 3) buf_add_char(out, (char)(group >> 10 & 255));
    if (n % 4 >= 2) buf_add_char(out, (char)(group >> (n % 4 == 3 ? 2 : 4) & 255));
    return !out->failed;
}
