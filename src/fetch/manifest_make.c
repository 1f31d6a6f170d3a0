/* manifest_make.c - the clef-manifest/1 of a folder, a file a line, in the order of the paths'
 * bytes.
 *
 * It holds no time and no place, so that two people who have the same files write the same bytes
 * and one signature serves both; when it was signed stands in the signature's comment. A converted
 * folder has no commit: the sum of what SHA256SUMS of the folder would be stands for it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "checkpoint/hub.h"
#include "fetch/listing.h"
#include "fetch/manifest.h"
#include "fetch/sums.h"
#include "text/pyjson.h"

/* Keeps the entries that the manifest will list, and refuses what it cannot. */
static clef_status select_files(listing_entry *entries, size_t *n, const char *dir, bool snapshot,
                                clef_error *err) {
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        const listing_entry e = entries[i];
        const char *why = NULL;
        if (e.kind == LISTING_FOLDER || manifest_is_aside(e.path)) continue;
        if (!manifest_is_path(e.path, &why))
            return clef_fail(err, CLEF_ERR_INPUT, "%s/%s: a manifest cannot list this path: %s",
                             dir, e.path.p, why);
        if (e.kind == LISTING_OTHER || (e.kind == LISTING_LINK && !snapshot))
            return clef_fail(err, CLEF_ERR_INPUT, "%s/%s: %s, wanted a regular file", dir, e.path.p,
                             e.kind == LISTING_LINK ? "a link" : "a device or a pipe");
        if (manifest_is_unfinished(e.path))
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s/%s: not a whole file, but what an interrupted clef get left", dir,
                             e.path.p);
        entries[kept++] = e;
    }
    *n = kept;
    if (kept > 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT, "%s: there is no file in it", dir);
}

/* Sums the files; the paths in `sums` are for free(). */
static clef_status sum_files(sums_file *sums, const listing_entry *entries, size_t n,
                             const manifest_options *o, clef_error *err) {
    for (size_t i = 0; i < n; i++) {
        TRY(hub_file(&sums[i].path, o->dir, entries[i].path.p, err));
        struct stat st;
        if (stat(sums[i].path, &st) != 0)
            return clef_fail(err, CLEF_ERR_IO, "%s: %s", sums[i].path, strerror(errno));
        sums[i].size = (uint64_t)st.st_size;
    }
    TRY(sums_run(sums, n, o->jobs, o->progress, o->user, err));
    for (size_t i = 0; i < n; i++)
        if (sums[i].failure.status != CLEF_OK)
            return clef_fail(err, sums[i].failure.status, "%s", sums[i].failure.text);
    return CLEF_OK;
}

static clef_status sum_over_all(char hex[DIGEST_HEX], const listing_entry *entries,
                                const sums_file *sums, size_t n, clef_error *err) {
    buf text = {0};
    for (size_t i = 0; i < n; i++) buf_printf(&text, "%s  %s\n", sums[i].sha256, entries[i].path.p);
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = digest_bytes(hex, text.p, text.n, err);
    buf_free(&text);
    return s;
}

static void write_manifest(buf *out, const manifest_options *o, const char *repo,
                           const char *revision, const listing_entry *entries,
                           const sums_file *sums, size_t n) {
    buf_add_text(out, "{\"manifest\": \"" MANIFEST_FORMAT "\",\n \"repo\": ");
    pyjson_string(out, str_of(repo));
    buf_add_text(out, ",\n \"commit\": ");
    pyjson_string(out, str_of(revision));
    buf_add_text(out, ",\n \"sources\": [");
    for (size_t i = 0; i < o->n_sources; i++) {
        buf_add_text(out, i == 0 ? "" : ",\n             ");
        pyjson_string(out, str_of(o->sources[i]));
    }
    buf_add_text(out, "],\n \"files\": [");
    for (size_t i = 0; i < n; i++) {
        buf_add_text(out, i == 0 ? "\n  {\"path\": " : ",\n  {\"path\": ");
        pyjson_string(out, entries[i].path);
        buf_printf(out, ", \"size\": %llu, \"sha256\": \"%s\"}", (unsigned long long)sums[i].size,
                   sums[i].sha256);
    }
    buf_add_text(out, "]}\n");
}

static void free_sums(sums_file *sums, size_t n) {
    for (size_t i = 0; sums != NULL && i < n; i++) free(sums[i].path);
    free(sums);
}

clef_status manifest_make(buf *out, const manifest_options *o, clef_error *err) {
    arena mem = {0};
    listing_entry *entries = NULL;
    sums_file *sums = NULL;
    char *repo = NULL, *commit = NULL, all[DIGEST_HEX];
    const size_t begin = out->n;
    size_t n = 0;
    clef_status s = hub_snapshot(&repo, &commit, o->dir, err);
    if (s == CLEF_OK && o->repo == NULL && repo == NULL)
        s = clef_fail(err, CLEF_ERR_INPUT,
                      "%s: whose files these are has to be said: --repo Org/Name", o->dir);
    if (s == CLEF_OK) s = listing_read(&entries, &n, o->dir, &mem, err);
    if (s == CLEF_OK) s = select_files(entries, &n, o->dir, repo != NULL, err);
    if (s == CLEF_OK && (sums = calloc(n, sizeof *sums)) == NULL) s = clef_fail_memory(err);
    if (s == CLEF_OK) s = sum_files(sums, entries, n, o, err);
    if (s == CLEF_OK) s = sum_over_all(all, entries, sums, n, err);
    if (s == CLEF_OK) {
        const char *revision = o->revision != NULL ? o->revision : commit != NULL ? commit : all;
        write_manifest(out, o, o->repo != NULL ? o->repo : repo, revision, entries, sums, n);
        s = buf_status(out, err);
    }
    /* What is wrong with an option is found by reading what was written. */
    manifest again = {0};
    if (s == CLEF_OK)
        s = manifest_parse(&again, (str){out->p + begin, out->n - begin}, "the new manifest", err);
    manifest_free(&again);
    free_sums(sums, n);
    free(entries);
    free(repo);
    free(commit);
    arena_free(&mem);
    return s;
}
