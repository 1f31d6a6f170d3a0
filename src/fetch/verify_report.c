/* verify_report.c - what came out of a verification, for people and for programs.
 *
 * JSON, one line, members in this order: "right", "folder", "list", "repo", "revision" (null for
 * sums), "trust" ("built-in", "signed" or "none"), "key" and "comment" (null unless signed),
 * "bytes", "seconds", and "files": path, state, size, sha256 (null where not summed), detail (null
 * where nothing is wrong). Names are made safe as in the text form. */
#include "fetch/verify.h"
#include "text/pyjson.h"

static const char *const state_names[VERIFY_N_STATES] = {
    [VERIFY_RIGHT] = "right",     [VERIFY_ABSENT] = "absent",         [VERIFY_OTHER] = "other",
    [VERIFY_MISSING] = "missing", [VERIFY_CHANGED] = "changed",       [VERIFY_LINKED] = "linked",
    [VERIFY_EXTRA] = "extra",     [VERIFY_UNREADABLE] = "unreadable", [VERIFY_UNSOUND] = "unsound"};

/* ---- JSON ---- */

static void add_member(buf *out, const char *name, const char *text) {
    buf_printf(out, ", \"%s\": ", name);
    if (text == NULL) {
        buf_add_text(out, "null");
        return;
    }
    buf safe = {0};
    buf_add_safe(&safe, str_of(text));
    if (safe.failed) out->failed = true;
    pyjson_string(out, (str){safe.p, safe.n});
    buf_free(&safe);
}

static const char *or_null(const char *text) {
    return text == NULL || *text == '\0' ? NULL : text;
}

static void add_json(buf *out, const verify_result *r) {
    static const char *const trusts[] = {"built-in", "signed", "none"};
    buf_printf(out, "{\"right\": %s", r->n_faults == 0 ? "true" : "false");
    add_member(out, "folder", r->dir);
    add_member(out, "list", r->list.p);
    add_member(out, "repo", or_null(r->m.repo.p));
    add_member(out, "revision", or_null(r->m.revision.p));
    add_member(out, "trust", trusts[r->trust]);
    add_member(out, "key", or_null(r->key_id));
    buf_add_text(out, ", \"comment\": ");
    if (r->trust == VERIFY_SIGNED) /* valid UTF-8 */
        pyjson_string(out, (str){r->comment.p, r->comment.n});
    else
        buf_add_text(out, "null");
    buf_printf(out, ", \"bytes\": %llu, \"seconds\": %.6f, \"files\": [",
               (unsigned long long)r->bytes, r->seconds);
    for (size_t i = 0; i < r->n_files; i++) {
        const verify_file *f = &r->files[i];
        if (i > 0) buf_add_text(out, ", ");
        buf_printf(out, "{\"state\": \"%s\"", state_names[f->state]);
        add_member(out, "path", f->path.p);
        buf_printf(out, ", \"size\": %llu", (unsigned long long)f->size);
        add_member(out, "sha256", or_null(f->sha256));
        add_member(out, "detail", or_null(f->detail.p));
        buf_add_char(out, '}');
    }
    buf_add_text(out, "]}\n");
}

/* ---- text ---- */

static void add_trust(buf *out, const verify_result *r) {
    switch (r->trust) {
    case VERIFY_BUILTIN:
        buf_add_text(out, "sums that are built into this program");
        break;
    case VERIFY_SIGNED:
        buf_printf(out, "signed by key %s, %s\nsigned comment: ", r->key_id,
                   r->own_key ? "which you gave" : "that of Freeweights");
        buf_add_str(out, (str){r->comment.p, r->comment.n}); /* printable, tabs included */
        break;
    case VERIFY_NOT_SIGNED:
        buf_add_text(out, "no signature was checked: this shows damage, not forgery");
        break;
    }
}

static void add_text(buf *out, const verify_result *r) {
    buf_printf(out, "%-10s ", "folder");
    buf_add_safe(out, str_of(r->dir));
    buf_printf(out, "\n%-10s ", "list");
    buf_add_safe(out, (str){r->list.p, r->list.n});
    if (r->m.repo.n > 0) buf_printf(out, "\n%-10s %s at %s", "model", r->m.repo.p, r->m.revision.p);
    buf_printf(out, "\n%-10s ", "trust");
    add_trust(out, r);
    buf_add_char(out, '\n');
    for (size_t i = 0; i < r->n_files; i++) {
        const verify_file *f = &r->files[i];
        buf_printf(out, "%-10s ", state_names[f->state]);
        buf_add_safe(out, f->path);
        if (f->state == VERIFY_ABSENT) buf_add_text(out, ": not needed, and not there");
        if (f->state == VERIFY_OTHER) buf_add_text(out, ": not listed, and not looked at");
        if (f->detail.n > 0) {
            buf_add_text(out, ": ");
            buf_add_str(out, f->detail);
        }
        buf_add_char(out, '\n');
    }
    buf_printf(out, "%zu of %zu listed files right", r->n_of[VERIFY_RIGHT], r->m.n_files);
    if (r->n_faults > 0) buf_printf(out, ", %zu fault%s", r->n_faults, r->n_faults == 1 ? "" : "s");
    buf_printf(out, "; %.1f MB summed in %.1f s", (double)r->bytes / 1e6, r->seconds);
    if (r->seconds >= 0.05) buf_printf(out, ", %.2f GB/s", (double)r->bytes / 1e9 / r->seconds);
    buf_add_char(out, '\n');
}

clef_status verify_report(buf *out, const verify_result *r, bool as_json, clef_error *err) {
    if (as_json)
        add_json(out, r);
    else
        add_text(out, r);
    return buf_status(out, err);
}
