/* ask.c - the smallest whole program on libclef: ask DIR < request.json
 *
 *     cc ask.c $(pkg-config --cflags --libs clef) -o ask && ./ask ./clef-flash < request.json */
#include <stdio.h>
#include <stdlib.h>

#include "clef.h"

int main(int argc, char **argv) {
    static char body[1 << 20]; /* the request: JSON with "model", "state" and "questions" */
    const size_t n = fread(body, 1, sizeof body, stdin);
    if (argc != 2 || ferror(stdin) || !feof(stdin)) {
        fprintf(stderr, "usage: ask DIR < request.json (at most 1 MiB)\n");
        return 2;
    }

    clef_engine *engine = NULL;
    clef_answer *answer = NULL;
    clef_error err = {0};
    const clef_options options = {.model = argv[1]}; /* the rest is zero: the defaults */
    clef_status status = clef_open(&engine, &options, &err);
    if (status == CLEF_OK) status = clef_ask(engine, NULL, body, n, &answer, &err);
    if (status == CLEF_OK) {
        printf("%s\n", clef_answer_json(answer, NULL));

        /* The same as numbers: every option of every question, in the order they were scored. */
        size_t n_options = 0;
        const clef_option *o = clef_answer_options(answer, &n_options);
        for (size_t i = 0; i < n_options; i++)
            printf("%s / %s: logit %g, probability %g\n", o[i].question, o[i].option,
                   (double)o[i].logit, (double)o[i].probability);
    } else {
        fprintf(stderr, "ask: %s\n", err.text);
    }
    clef_answer_free(answer); /* NULL is fine */
    clef_close(engine);
    return status == CLEF_OK ? 0 : 1;
}
