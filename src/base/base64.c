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

/* The six bits of every character; 64 for those that are not of the alphabet. */
static void fill_values(uint8_t values[256]) {
    memset(values, 64, 256);
    for (uint8_t i = 0; i < 64; i++) values[(unsigned char)alphabet[i]] = i;
}

bool base64_decode(buf *out, str text) {
    if (text.n % 4 != 0) return false;
    const unsigned char *in = (const unsigned char *)text.p;
    size_t n = text.n;
    while (n > 0 && text.n - n < 2 && in[n - 1] == '=') n--;
    uint8_t values[256];
    fill_values(values);
    for (size_t i = 0; i < n; i++)
        if (values[in[i]] > 63) return false;
    /* What the last character has beyond the last byte: 4 bits before "==", 2 before "=". */
    if (n > 0 && (values[in[n - 1]] & ((1u << 2 * (text.n - n)) - 1)) != 0) return false;
    /* Pictures come this way, so bytes are appended many at a time. */
    unsigned char block[3 * 1024];
    size_t used = 0;
    for (size_t i = 0; i < n; i += 4) {
        const size_t left = n - i < 4 ? n - i : 4;
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) group = group << 6 | (k < left ? values[in[i + k]] : 0u);
        block[used] = (unsigned char)(group >> 16);
        block[used + 1] = (unsigned char)(group >> 8);
        block[used + 2] = (unsigned char)group;
        used += left - 1;
        if (used + 3 > sizeof block) {
            buf_add(out, block, used);
            used = 0;
        }
    }
    buf_add(out, block, used);
    return !out->failed;
}
