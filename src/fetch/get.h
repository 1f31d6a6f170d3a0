/* get.h - a model, or the parts of it that are wanted, from a hub or by a signed manifest into a
 * folder or the hub cache. */
#ifndef FETCH_GET_H
#define FETCH_GET_H

#include "base/buf.h"
#include "base/status.h"

typedef enum {
    GET_PLANNED, /* once: all files and sizes are known; `path` is NULL */
    GET_CHECKED, /* bytes of a file that is there were read; `have` counts them */
    GET_CAME,    /* bytes of a file are there */
    GET_RETRY,   /* a try failed, another follows; `text` is the sentence */
    GET_PRESENT, /* a file was there already */
    GET_FETCHED  /* a file is complete */
} get_kind;

typedef struct {
    get_kind kind;
    size_t file, n_files;
    const char *path;
    uint64_t have, size;         /* of the file, bytes */
    uint64_t all_have, all_size; /* of all files */
    uint64_t fetched;            /* bytes that came over the network in this run */
    const char *text;
} get_event;

typedef struct {
    const char *repo;           /* "Org/Name"; NULL: what the manifest names */
    const char *revision;       /* branch, tag or commit; NULL: that of the manifest, or of the
                                 * built-in table where there is one, else "main" */
    const char *manifest;       /* file or URL of a signed manifest; NULL: ask the hub */
    const char *key;            /* public key or its file; NULL: the key of Freeweights */
    const char *const *sources; /* [n_sources] URLs of folders, tried before all others */
    size_t n_sources;
    const char *const *include; /* [n_include] shell patterns; 0: what the engine needs */
    size_t n_include;
    bool all;              /* every file */
    const char *dir;       /* a plain folder; NULL: the hub cache */
    const char *hub_cache; /* the folder of models--Org--Name; only used without `dir` */
    const char *endpoint;  /* URL of the hub */
    const char *token;     /* for the endpoint alone; NULL: none */
    const char *ca_file;   /* as in http_options, like the four after it */
    bool allow_http;
    unsigned connect_s, stall_s;
    unsigned retry_ms; /* as in download */
    unsigned jobs;     /* files at a time; 0: 4 */
    bool (*stop)(void *user);
    void (*watch)(void *user, const get_event *event); /* NULL: nobody; one call at a time, from any
                                                          thread */
    void *user;
} get_options;

typedef struct {
    char *folder; /* where the files are, for free() */
    char commit[65];
    size_t n_files, n_fetched; /* wanted files, and those of them that were not there */
    uint64_t bytes, fetched;   /* of all files, and over the network */
} get_result;

/* On success every wanted file is in the folder with the right size and sum; out->folder is then
 * the caller's. On failure *out is untouched and the next call goes on with what is there. */
clef_status get_run(get_result *out, const get_options *options, clef_error *err);

/* When `model` is no folder but a name that is not in the cache: appends which command fetches it,
 * and how large it is where that is known. Else appends nothing. */
void get_advice(buf *out, const char *model, const char *hub_cache);

#endif
