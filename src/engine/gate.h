/* gate.h - what a replay of recorded runs found, between its computing and its printing. */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

#include "engine/engine.h"
#include "engine/fixture.h"
#include "engine/job.h"

typedef enum { MATCH_NOT_CHECKED, MATCH_EXACT, MATCH_DIFFERS } gate_match;

/* One question of a run whose numbers were compared. */
typedef struct {
    uint32_t oracle, found; /* the option with the largest probability */
    double margin;          /* of the oracle's best two; 1 for a single option */
    double max_dp;
    bool near; /* a tie: the margin is within the bar, so the answer is only listed */
} gate_question;

typedef struct {
    double max_dp, mean_dp; /* over the run's options */
    uint32_t worst;         /* the option of max_dp, flat */
    uint32_t n_wrong;       /* other answers than the oracle's, ties not counted */
    uint32_t n_near;
} gate_numbers;

typedef struct {
    const fixture_run *want;
    job j;
    gate_match ids, spans;
    bool failed;              /* `why` says what went wrong */
    bool compared;            /* the numbers below are there */
    clef_error why;           /* else why something was not checked; empty when all was */
    gate_question *questions; /* [want->n_questions] */
    gate_numbers numbers;
} gate_run;

/* A known fault and what became of it. */
typedef struct {
    const char *name;
    bool applies;           /* false: it is no fault here; `caught` is then meaningless */
    const char *no_fault;   /* why, where it does not apply */
    bool caught;            /* the gate turned red */
    const char *by;         /* the check that did */
    const fixture_run *run; /* the first run that showed it; NULL: the mean over runs, or none */
    double max_dp;          /* the largest difference seen while it was looked for */
} gate_arm;

enum { GATE_N_ARMS = 5 };

typedef struct {
    const char *model;
    const char *const *files;
    size_t n_files;
    clef_gate_options bars; /* defaults filled in */
    gate_run *runs;
    size_t n_runs;
    double mean_dp;        /* mean over compared runs of their means */
    const gate_run *first; /* the one that was repeated; NULL: none was compared */
    bool same_bits;
    gate_arm arms[GATE_N_ARMS];
} gate_result;

/* The state of a check over all runs: how often it was made, held, and could not be made. */
typedef struct {
    const char *name;
    size_t n, n_held, n_not_checked;
    bool holds; /* never with n == 0 */
} gate_check;

enum {
    GATE_IDS,
    GATE_SPANS,
    GATE_ANSWERS,
    GATE_MAX_DP,
    GATE_MEAN_DP,
    GATE_REPEAT,
    GATE_RED,
    GATE_N_CHECKS
};

/* Fills checks[]; whether all of them hold (GATE_RED only where it was asked for). */
bool gate_checks(gate_check checks[GATE_N_CHECKS], const gate_result *r);

void gate_table(buf *out, const gate_result *r);
void gate_json(buf *out, const gate_result *r);

#endif
