/* manifest.h - what a model folder has to hold: paths, sizes and sums, from a clef-manifest/1, from
 * SHA256SUMS, or from the table of the released model that is built in.
 *
 * A manifest is hostile until its signature is checked (minisign.h), and parsing is safe even then.
 * manifest.c has the form of each. */
#ifndef FETCH_MANIFEST_H
#define FETCH_MANIFEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/str.h"

#define MANIFEST_FORMAT "clef-manifest/1"
#define MANIFEST_NAME "clef-manifest.json"
#define MANIFEST_SUMS "SHA256SUMS"
#define MANIFEST_RELEASE "Cloudflare/clef-flash" /* the model that is built in */
enum { MANIFEST_MAX_BYTES = 4 << 20 };

#define MANIFEST_ANY_SIZE UINT64_MAX

typedef struct {
    str path;      /* relative, safe to join to a folder, zero-terminated */
    uint64_t size; /* bytes; MANIFEST_ANY_SIZE where only the sum is known: SHA256SUMS and a few
                      small files of the built-in table */
    char sha256[DIGEST_HEX];
} manifest_file;

/* {0} is safe to free. All it points to is its own. */
typedef struct {
    str repo;     /* "Org/Name", zero-terminated; empty for SHA256SUMS */
    str revision; /* 40 or 64 lowercase hexadecimal digits, zero-terminated; empty for SHA256SUMS */
    const manifest_file *files; /* [n_files], in the order of the text */
    size_t n_files;
    const str *sources; /* [n_sources], https URLs that end in '/', zero-terminated, in order */
    size_t n_sources;
    arena mem;
} manifest;

/* Reads `text`, which is a clef-manifest/1 when it begins with '{' and SHA256SUMS otherwise.
 * `label` names it in error sentences. Check the signature over the same bytes first. On failure
 * *out is untouched. Free with manifest_free. */
clef_status manifest_parse(manifest *out, str text, const char *label, clef_error *err);
void manifest_free(manifest *m);

/* The built-in table for `repo` at `revision` (NULL: the one that is published as a signed
 * manifest); CLEF_ERR_INPUT naming what is built in when there is none. */
clef_status manifest_builtin(manifest *out, const char *repo, const char *revision,
                             clef_error *err);

/* A right signature on another model's manifest, or on an older one, is the obvious swap: fails
 * unless `m` is of `repo` and `revision`. Either may be NULL: not asked for. */
clef_status manifest_expect(const manifest *m, const char *repo, const char *revision,
                            const char *label, clef_error *err);

/* Whether a file of that path belongs to what the engine opens, or is looked at by what does; the
 * rest of a release is for people and other programs. */
bool manifest_is_needed(str path);

/* Whether a path of a model's folder is no part of the model: its manifest, the signature of that,
 * and the notes of huggingface_hub. */
bool manifest_is_aside(str path);

/* Whether a file of that path is one that is still being fetched, or a note about it (part.h). */
bool manifest_is_unfinished(str path);

/* Whether the path may name a file below a folder: relative, parts between single slashes, none of
 * them "." or "..", printable ASCII without a backslash. On failure *why says what is wrong. */
bool manifest_is_path(str path, const char **why);

/* The same as a sentence about the list `label`. */
clef_status manifest_check_path(str path, const char *label, clef_error *err);

/* Refuses two of the paths that are one file where case does not count, and a file that is also a
 * folder of another. Sorts `paths`. */
clef_status manifest_check_twins(str *paths, size_t n, const char *label, clef_error *err);

typedef struct {
    const char *dir;            /* a folder */
    const char *repo;           /* "Org/Name"; NULL: that of a snapshot in a hub cache */
    const char *revision;       /* NULL: the commit of such a snapshot, else a sum over all files */
    const char *const *sources; /* [n_sources] */
    size_t n_sources;
    unsigned jobs;           /* threads; 0: as many as this process may run on */
    clef_progress *progress; /* NULL: none; counts bytes, on any thread, one call at a time */
    void *user;
} manifest_options;

/* Appends the clef-manifest/1 of a folder, which manifest_parse takes. The same files and options
 * give the same bytes. */
clef_status manifest_make(buf *out, const manifest_options *o, clef_error *err);

#endif
