/* embed.c - a file as a C array, for the program to carry.
 *
 * Usage: embed NAME FILE > FILE.c
 *
 * Writes `const unsigned char NAME[]` and `const size_t NAME_len`. Of a file that ends in ".html"
 * also `const char page_csp[]`: a content-security-policy under which a browser runs the scripts
 * and styles that stand in the file, known by their SHA-256, and loads nothing from elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/file.h"

static void die(const char *what) {
    fprintf(stderr, "embed: %s\n", what);
    exit(2);
}

/* The digest's hexadecimal form as base64. */
static void print_base64(const char *hex) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char bytes[33] = {0};
    for (size_t i = 0; i < 32; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    for (size_t i = 0; i < 32; i += 3) {
        const unsigned long group =
            (unsigned long)bytes[i] << 16 | (unsigned long)bytes[i + 1] << 8 | bytes[i + 2];
        putchar(DIGITS[group >> 18 & 63]);
        putchar(DIGITS[group >> 12 & 63]);
        putchar(DIGITS[group >> 6 & 63]);
        putchar(i + 2 < 32 ? DIGITS[group & 63] : '=');
    }
}

/* The hashes of what stands between <TAG> and </TAG>, or 'none'. */
static void print_sources(const char *text, const char *tag) {
    char open[32], close[32];
    snprintf(open, sizeof open, "<%s>", tag);
    snprintf(close, sizeof close, "</%s>", tag);
    printf("; %s-src", tag);
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, open)) != NULL; found++) {
        at += strlen(open);
        const char *end = strstr(at, close);
        char hex[DIGEST_HEX];
        if (end == NULL) die("an element that does not end");
        if (digest_bytes(hex, at, (size_t)(end - at), NULL) != CLEF_OK) die("no digest");
        fputs(" 'sha256-", stdout);
        print_base64(hex);
        putchar('\'');
        at = end;
    }
    if (found == 0) fputs(" 'none'", stdout);
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: embed NAME FILE");
    const char *name = argv[1], *path = argv[2];
    buf text = {0};
    clef_error err = {0};
    if (file_read(&text, path, 16 << 20, &err) != CLEF_OK) die(err.text);
    printf("/* %s, by tools/embed. */\n#include \"server/generated.h\"\n\n", path);
    printf("const unsigned char %s[] = {", name);
    for (size_t i = 0; i < text.n; i++)
        printf("%s%u,", i % 24 == 0 ? "\n" : "", (unsigned char)text.p[i]);
    printf("\n};\nconst size_t %s_len = %zu;\n", name, text.n);
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".html") == 0) {
        printf("const char page_csp[] = \"default-src 'none'");
        print_sources(text.p, "script");
        print_sources(text.p, "style");
        printf("; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
               "frame-ancestors 'none'\";\n");
    }
    buf_free(&text);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
