/* json_echo.c - answers questions about JSON and numbers on standard output, for
 * tools/parity/json_parity.py, which puts the same ones to CPython.
 *
 * A question is one letter, the payload's length as 4 bytes (little-endian), and the payload; an
 * answer is a byte (0 or the clef_status), a length and a payload. The letters:
 *   p, a   a JSON text -> the text in the prompt or the answer style, or the error's sentence
 *   s      8 bytes of a double -> its spelling
 *   d      a number's spelling -> 8 bytes of the double
 *   r      a byte n and 8 bytes of a double -> 8 bytes of the double rounded to n digits */
#include <stdio.h>
#include <stdlib.h>

#include "text/decimal.h"
#include "text/pyjson.h"

static void die(const char *why) {
    fprintf(stderr, "json_echo: %s\n", why);
    exit(2);
}

static clef_status echo_text(buf *out, str text, pyjson_style style) {
    static const json_limits python = {.max_depth = 900, .allow_nonfinite = true};
    arena mem = {0};
    clef_error err = {0};
    const json *v = NULL;
    clef_status s = json_parse(&v, text, "text", &python, &mem, &err);
    if (s == CLEF_OK) s = pyjson_write(out, v, style, &err);
    if (s != CLEF_OK) buf_add_text(out, err.text);
    arena_free(&mem);
    return s;
}

static clef_status answer(buf *out, int letter, str payload) {
    double value = 0;
    switch (letter) {
    case 'p':
        return echo_text(out, payload, PYJSON_PROMPT);
    case 'a':
        return echo_text(out, payload, PYJSON_ANSWER);
    case 's':
        if (payload.n != sizeof value) die("a double has 8 bytes");
        memcpy(&value, payload.p, sizeof value);
        pyjson_double(out, value);
        return CLEF_OK;
    case 'd':
        value = decimal_read(payload);
        break;
    case 'r':
        if (payload.n != 1 + sizeof value) die("a rounding has 9 bytes");
        memcpy(&value, payload.p + 1, sizeof value);
        value = pyjson_round(value, (unsigned char)payload.p[0]);
        break;
    default:
        die("unknown question");
    }
    buf_add(out, &value, sizeof value);
    return CLEF_OK;
}

static uint32_t length_of(const unsigned char head[5]) {
    return (uint32_t)head[1] | (uint32_t)head[2] << 8 | (uint32_t)head[3] << 16 |
           (uint32_t)head[4] << 24;
}

int main(void) {
    unsigned char head[5];
    char *payload = NULL;
    size_t cap = 0;
    buf out = {0};
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        const uint32_t n = length_of(head);
        if (n >= cap) {
            cap = (size_t)n + 1;
            free(payload);
            payload = malloc(cap);
            if (payload == NULL) die("out of memory");
        }
        if (fread(payload, 1, n, stdin) != n) die("a question is cut short");
        out.n = 0;
        const clef_status s = answer(&out, head[0], (str){payload, n});
        if (buf_status(&out, NULL) != CLEF_OK) die("out of memory");
        const unsigned char tail[5] = {(unsigned char)s, (unsigned char)out.n,
                                       (unsigned char)(out.n >> 8), (unsigned char)(out.n >> 16),
                                       (unsigned char)(out.n >> 24)};
        fwrite(tail, 1, sizeof tail, stdout);
        fwrite(out.p, 1, out.n, stdout);
    }
    free(payload);
    buf_free(&out);
    return ferror(stdin) || fflush(stdout) != 0 ? 2 : 0;
}
