/* fixture.h - recorded runs of a reference, as the gate replays them; testdata/README.md has their
 * form. */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H

#include "request/request.h"

typedef struct {
    str id;
    question_kind kind;
    span instructions;
    uint32_t n_options;
    const str *options;          /* [n_options] ids in scoring order */
    const span *spans;           /* [n_options] */
    const double *probabilities; /* [n_options] */
} fixture_question;

typedef struct {
    str id;
    const char *file; /* the path it was read from */
    str body;         /* the request as text */
    uint32_t n_tokens;
    const int32_t *ids;    /* [n_tokens]; NULL when they are withheld */
    bool pictured;         /* the run had pictures or videos, which the file only names */
    uint32_t image_tokens; /* tokens of its picture; 0: none, or more than one */
    const str *image_files, *image_hashes; /* [n_image_files] names, and SHA-256 in hex or empty */
    uint32_t n_image_files;
    const fixture_question *questions;
    uint32_t n_questions, n_options;
} fixture_run;

/* Growable runs. {0} is empty; free with fixture_list_free. Strings and arrays of the runs live in
 * the arena of the load. */
typedef struct {
    fixture_run *runs;
    size_t n, cap;
} fixture_list;
void fixture_list_free(fixture_list *list);

/* Appends the runs of the file at `path`, which has to outlive the list. A file that is not what it
 * has to be is CLEF_ERR_FORMAT naming file and JSON path. */
clef_status fixture_load(fixture_list *list, const char *path, arena *mem, clef_error *err);

/* The same from memory; `label` stands for the path. */
clef_status fixture_parse(fixture_list *list, str text, const char *label, arena *mem,
                          clef_error *err);

#endif
