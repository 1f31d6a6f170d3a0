/* remote.h - what a hub says about a repository: its commit, and the files of it. */
#ifndef FETCH_REMOTE_H
#define FETCH_REMOTE_H

#include "base/arena.h"
#include "fetch/download.h"

/* The largest file that is believed. */
#define REMOTE_MAX_SIZE ((uint64_t)1 << 43)

typedef struct {
    str path; /* zero-terminated, as the hub says it: check with manifest_check_path */
    part_wanted wanted;
} remote_file;

/* {0} is safe to free. */
typedef struct {
    char commit[41];
    remote_file *files; /* [n_files] */
    size_t n_files, cap;
    arena mem;
} remote;

/* Asks the hub at `endpoint` (a URL) for "Org/Name" at `revision`, a branch, a tag or a commit. On
 * failure *out is untouched. Free with remote_free. */
clef_status remote_list(remote *out, const download *d, const char *endpoint, const char *repo,
                        const char *revision, clef_error *err);
void remote_free(remote *r);

/* Appends the files of one page of the hub's list, which `label` names in error sentences. On
 * failure some of them may have been appended. */
clef_status remote_add_page(remote *r, str text, const char *label, clef_error *err);

/* Appends "ENDPOINT/ORG/NAME/resolve/REVISION/", below which the files are. */
void remote_source(buf *url, const char *endpoint, const char *repo, const char *commit);

#endif
