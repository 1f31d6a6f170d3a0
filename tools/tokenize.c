/* tokenize.c - many texts to ids, for comparing this tokenizer with another one.
 *
 *   tokenize TOKENIZER.json PATTERN CONTROL < texts > ids
 *
 * PATTERN is file, qwen2 or qwen35; CONTROL is plain or reference. In: for each text its length in
 * bytes (4 bytes, little-endian) and its bytes. Out: for each text the number of ids (4 bytes) and
 * the ids (4 bytes each). Time and speed go to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "text/tokenizer.h"

static int fail(const clef_error *err) {
    fprintf(stderr, "tokenize: %s\n", err->text);
    return 2;
}

/* Reads the next text into *text (grown to *room). 1: done, 0: no more, -1: the input is cut. */
static int read_text(char **text, size_t *room, uint32_t *n) {
    const size_t got = fread(n, 1, sizeof *n, stdin);
    if (got == 0) return 0;
    if (got != sizeof *n) return -1;
    if (*n > *room) {
        char *grown = realloc(*text, *n);
        if (grown == NULL) return -1;
        *text = grown;
        *room = *n;
    }
    return fread(*text, 1, *n, stdin) == *n ? 1 : -1;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fputs("usage: tokenize TOKENIZER.json file|qwen2|qwen35 plain|reference\n", stderr);
        return 2;
    }
    clef_error err = {0};
    tokenizer *t = NULL;
    const char *pattern = strcmp(argv[2], "file") == 0 ? NULL : argv[2];
    const double begin = cpu_seconds();
    if (tokenizer_load(&t, argv[1], pattern, &err) != CLEF_OK) return fail(&err);
    const double loaded = cpu_seconds();
    const clef_control control =
        strcmp(argv[3], "plain") == 0 ? CLEF_CONTROL_PLAIN : CLEF_CONTROL_REFERENCE;
    char *text = NULL;
    size_t room = 0, bytes = 0, n_ids = 0;
    double encoding = 0;
    id_list ids = {0};
    int more, status = 0;
    for (uint32_t n = 0; (more = read_text(&text, &room, &n)) > 0;) {
        ids.n = 0;
        const double start = cpu_seconds();
        if (tokenizer_encode(t, (str){text, n}, control, &ids, &err) != CLEF_OK) {
            status = fail(&err);
            break;
        }
        encoding += cpu_seconds() - start;
        bytes += n;
        n_ids += ids.n;
        const uint32_t count = (uint32_t)ids.n;
        if (fwrite(&count, sizeof count, 1, stdout) != 1 ||
            fwrite(ids.ids, sizeof *ids.ids, ids.n, stdout) != ids.n) {
            fputs("tokenize: the ids cannot be written\n", stderr);
            status = 2;
            break;
        }
    }
    if (more < 0) {
        fputs("tokenize: a text is cut\n", stderr);
        status = 2;
    }
    fprintf(stderr, "loaded in %.3f s; %zu bytes, %zu ids in %.3f s, %.1f MB/s\n", loaded - begin,
            bytes, n_ids, encoding, encoding > 0 ? (double)bytes / encoding / 1e6 : 0);
    free(text);
    id_list_free(&ids);
    tokenizer_free(t);
    return status;
}
