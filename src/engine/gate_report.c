/* gate_report.c - what the gate found, as a table for people and as JSON with every run.
 *
 * Ids come from the fixtures and may hold anything: in the table they pass through buf_add_safe, so
 * that they cannot steer a terminal and a line stays a line. */
#include "engine/gate.h"
#include "text/pyjson.h"

static const char *match_word(gate_match m) {
    static const char *const words[] = {
        [MATCH_NOT_CHECKED] = "not checked", [MATCH_EXACT] = "exact", [MATCH_DIFFERS] = "differ"};
    return words[m];
}

/* ---- the table ---- */

static void quote(buf *out, str text) {
    buf_add_char(out, '"');
    buf_add_safe(out, text);
    buf_add_char(out, '"');
}

static void table_run(buf *out, const gate_run *r) {
    buf_printf(out, "%7u  %-11s  %-11s  ", r->want->n_tokens, match_word(r->ids),
               match_word(r->spans));
    if (r->compared) {
        const uint32_t gated = r->want->n_questions - r->numbers.n_near;
        buf_printf(out, "%3u/%-3u  %4u  %9.7f  %9.7f  ", gated - r->numbers.n_wrong, gated,
                   r->numbers.n_near, r->numbers.max_dp, r->numbers.mean_dp);
    } else {
        buf_printf(out, "%7s  %4s  %9s  %9s  ", "-", "-", "-", "-");
    }
    quote(out, r->want->id);
    buf_add_char(out, '\n');
}

static void table_near_ties(buf *out, const gate_result *g) {
    bool any = false;
    for (size_t i = 0; i < g->n_runs; i++) {
        const gate_run *r = &g->runs[i];
        for (uint32_t q = 0; r->compared && q < r->want->n_questions; q++) {
            const gate_question *k = &r->questions[q];
            const fixture_question *w = &r->want->questions[q];
            if (!k->near) continue;
            if (!any) buf_add_text(out, "\nnear ties (not in the answers, but in both bars)\n");
            any = true;
            buf_printf(out, "  margin %.4f, |dp| %.7f, ", k->margin, k->max_dp);
            quote(out, w->options[k->oracle]);
            buf_add_text(out, k->found == k->oracle ? " kept in " : " became ");
            if (k->found != k->oracle) {
                quote(out, w->options[k->found]);
                buf_add_text(out, " in ");
            }
            quote(out, r->want->id);
            buf_add_char(out, ' ');
            quote(out, w->id);
            buf_add_char(out, '\n');
        }
    }
}

/* Runs with a fault, or those where something was not checked, each with its reason. */
static void table_reasons(buf *out, const gate_result *g, bool faults, const char *title) {
    bool any = false;
    for (size_t i = 0; i < g->n_runs; i++) {
        const gate_run *r = &g->runs[i];
        const bool fault = r->failed || r->ids == MATCH_DIFFERS || r->spans == MATCH_DIFFERS;
        if (r->why.text[0] == '\0' || fault != faults) continue;
        if (!any) buf_printf(out, "\n%s\n", title);
        any = true;
        buf_add_text(out, "  ");
        quote(out, r->want->id);
        buf_add_text(out, ": ");
        buf_add_safe(out, str_of(r->why.text));
        buf_add_char(out, '\n');
    }
}

static void table_worst(buf *out, const gate_result *g) {
    const gate_run *worst = NULL;
    for (size_t i = 0; i < g->n_runs; i++)
        if (g->runs[i].compared &&
            (worst == NULL || g->runs[i].numbers.max_dp > worst->numbers.max_dp))
            worst = &g->runs[i];
    if (worst == NULL) return;
    uint32_t q = 0, at = worst->numbers.worst;
    while (at >= worst->want->questions[q].n_options) at -= worst->want->questions[q++].n_options;
    buf_printf(out, "\nlargest |dp| %.7f: run ", worst->numbers.max_dp);
    quote(out, worst->want->id);
    buf_add_text(out, ", question ");
    quote(out, worst->want->questions[q].id);
    buf_add_text(out, ", option ");
    quote(out, worst->want->questions[q].options[at]);
    buf_printf(out, "\nmean over runs of mean |dp| %.7f\n", g->mean_dp);
}

static void table_arms(buf *out, const gate_result *g) {
    if (!g->bars.red) return;
    buf_add_text(out, "\nred arms\n");
    for (int i = 0; i < GATE_N_ARMS; i++) {
        const gate_arm *a = &g->arms[i];
        buf_printf(out, "  %-33s  ", a->name);
        if (!a->applies) {
            buf_printf(out, "no fault here: %s\n", a->no_fault);
        } else if (!a->caught) {
            buf_printf(out, "NOT CAUGHT; largest |dp| %.7f\n", a->max_dp);
        } else {
            buf_printf(out, "caught by %s; |dp| %.7f", a->by, a->max_dp);
            if (a->run != NULL) {
                buf_add_text(out, " in ");
                quote(out, a->run->id);
            }
            buf_add_char(out, '\n');
        }
    }
}

static void table_checks(buf *out, const gate_result *g) {
    static const char *const units[GATE_N_CHECKS] = {
        [GATE_IDS] = "runs",     [GATE_SPANS] = "runs",   [GATE_ANSWERS] = "questions",
        [GATE_MAX_DP] = "runs",  [GATE_MEAN_DP] = "sets", [GATE_REPEAT] = "repeats",
        [GATE_RED] = "red arms",
    };
    gate_check checks[GATE_N_CHECKS];
    const bool all = gate_checks(checks, g);
    buf_printf(out, "\nbars: answers where the margin is over %g, max |dp| %g, mean |dp| %g\n",
               g->bars.margin, g->bars.max_dp, g->bars.mean_dp);
    for (int i = 0; i < GATE_N_CHECKS; i++) {
        const gate_check *c = &checks[i];
        if (i == GATE_RED && !g->bars.red) continue;
        buf_printf(out, "  %-8s %-5s %zu of %zu %s", c->name, c->holds ? "holds" : "FAILS",
                   c->n_held, c->n, units[i]);
        if (c->n_not_checked > 0) buf_printf(out, ", %zu not checked", c->n_not_checked);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "gate: %s\n", all ? "passed" : "FAILED");
}

void gate_table(buf *out, const gate_result *g) {
    size_t n_questions = 0, n_options = 0;
    for (size_t i = 0; i < g->n_runs; i++) {
        n_questions += g->runs[i].want->n_questions;
        n_options += g->runs[i].want->n_options;
    }
    buf_printf(out, "model ");
    quote(out, str_of(g->model));
    buf_printf(out, ": %zu runs, %zu questions, %zu options from %zu files\n\n", g->n_runs,
               n_questions, n_options, g->n_files);
    buf_printf(out, "%7s  %-11s  %-11s  %7s  %4s  %9s  %9s  %s\n", "tokens", "ids", "spans",
               "answers", "near", "max |dp|", "mean |dp|", "run");
    for (size_t i = 0; i < g->n_runs; i++) table_run(out, &g->runs[i]);
    table_near_ties(out, g);
    table_reasons(out, g, true, "faults");
    table_reasons(out, g, false, "not checked");
    table_worst(out, g);
    table_arms(out, g);
    table_checks(out, g);
}

/* ---- JSON ---- */

static void member_text(buf *out, const char *before, str value) {
    buf_add_text(out, before);
    pyjson_string(out, value);
}

static void member_number(buf *out, const char *before, double value) {
    buf_add_text(out, before);
    pyjson_double(out, value);
}

static const char *truth(bool value) {
    return value ? "true" : "false";
}

static void json_question(buf *out, const fixture_question *w, const gate_question *k) {
    member_text(out, "{\"id\": ", w->id);
    member_text(out, ", \"type\": ", str_of(question_kind_name(w->kind)));
    member_text(out, ", \"oracle\": ", w->options[k->oracle]);
    member_text(out, ", \"found\": ", w->options[k->found]);
    member_number(out, ", \"margin\": ", k->margin);
    buf_printf(out, ", \"near_tie\": %s", truth(k->near));
    member_number(out, ", \"max_dp\": ", k->max_dp);
    buf_add_char(out, '}');
}

static void json_run(buf *out, const gate_run *r) {
    member_text(out, "{\"id\": ", r->want->id);
    member_text(out, ", \"file\": ", str_of(r->want->file));
    buf_printf(out, ", \"tokens\": %u", r->want->n_tokens);
    member_text(out, ", \"ids\": ", str_of(match_word(r->ids)));
    member_text(out, ", \"spans\": ", str_of(match_word(r->spans)));
    buf_printf(out, ", \"failed\": %s, \"compared\": %s", truth(r->failed), truth(r->compared));
    if (r->why.text[0] != '\0') member_text(out, ", \"reason\": ", str_of(r->why.text));
    if (r->compared) {
        member_number(out, ", \"max_dp\": ", r->numbers.max_dp);
        member_number(out, ", \"mean_dp\": ", r->numbers.mean_dp);
        buf_add_text(out, ", \"questions\": [");
        for (uint32_t q = 0; q < r->want->n_questions; q++) {
            if (q > 0) buf_add_text(out, ", ");
            json_question(out, &r->want->questions[q], &r->questions[q]);
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, '}');
}

static void json_arm(buf *out, const gate_arm *a) {
    member_text(out, "{\"name\": ", str_of(a->name));
    buf_printf(out, ", \"applies\": %s, \"caught\": %s", truth(a->applies), truth(a->caught));
    if (a->caught) member_text(out, ", \"by\": ", str_of(a->by));
    if (a->run != NULL) member_text(out, ", \"run\": ", a->run->id);
    member_number(out, ", \"max_dp\": ", a->max_dp);
    buf_add_char(out, '}');
}

void gate_json(buf *out, const gate_result *g) {
    gate_check checks[GATE_N_CHECKS];
    const bool all = gate_checks(checks, g);
    member_text(out, "{\"schema\": ", STR("clef-gate/1"));
    member_text(out, ", \"version\": ", STR(CLEF_VERSION));
    member_text(out, ", \"model\": ", str_of(g->model));
    buf_add_text(out, ", \"fixtures\": [");
    for (size_t i = 0; i < g->n_files; i++) {
        if (i > 0) buf_add_text(out, ", ");
        pyjson_string(out, str_of(g->files[i]));
    }
    member_number(out, "], \"bars\": {\"margin\": ", g->bars.margin);
    member_number(out, ", \"max_dp\": ", g->bars.max_dp);
    member_number(out, ", \"mean_dp\": ", g->bars.mean_dp);
    member_number(out, "}, \"mean_dp\": ", g->mean_dp);
    buf_add_text(out, ", \"checks\": {");
    for (int i = 0; i < GATE_N_CHECKS; i++) {
        if (i == GATE_RED && !g->bars.red) continue;
        buf_printf(out,
                   "%s\"%s\": {\"made\": %zu, \"held\": %zu, \"not_checked\": %zu, "
                   "\"holds\": %s}",
                   i > 0 ? ", " : "", checks[i].name, checks[i].n, checks[i].n_held,
                   checks[i].n_not_checked, truth(checks[i].holds));
    }
    buf_add_text(out, "}, \"red\": [");
    for (int i = 0; g->bars.red && i < GATE_N_ARMS; i++) {
        if (i > 0) buf_add_text(out, ", ");
        json_arm(out, &g->arms[i]);
    }
    buf_add_text(out, "], \"runs\": [");
    for (size_t i = 0; i < g->n_runs; i++) {
        if (i > 0) buf_add_text(out, ", ");
        json_run(out, &g->runs[i]);
    }
    buf_printf(out, "], \"holds\": %s}", truth(all));
}
