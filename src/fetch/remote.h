/* remote.h - what a hub says about a repository: its commit, and the files of it. */
#ifndef FETCH_REMOTE_H
#define FETCH_REMOTE_H

#include "base/arena.h"
#include "fetch/download.h"

typedef struct {
    str path; /* zero-terminated, as the hub says it: check with manifest_is_path before use */
    part_wanted wanted;
} remote_file;

/* {0} is safe to free. */
typedef struct {
    char commit[41];
    const remote_file *files; /* [n_files] */
    size_t n_files;
    arena mem;
} remote;

/* Asks the hub at `endpoint` (a URL) for "Org/Name" at `revision`, a branch, a tag or a commit. On
 * failure *out is untouched. Free with remote_free. */
clef_status remote_list(remote *out, const download *d, const char *endpoint, const char *repo,
                        const char *revision, clef_error *err);
void remote_free(remote *r);

/* Appends "ENDPOINT/ORG/NAME/resolve/REVISION/", below which the files are. */
void remote_source(buf *url, const char *endpoint, const char *repo, const char *commit);

#endif
