/* verify.h - is a folder what a list says it is? */
#ifndef FETCH_VERIFY_H
#define FETCH_VERIFY_H

#include "fetch/manifest.h"
#include "fetch/minisign.h"

typedef struct {
    const char *dir;  /* a folder, or Org/Name in the hub cache */
    const char *list; /* a manifest or SHA256SUMS, or Org/Name of the built-in table; NULL: what
                       * there is for the folder (verify.c says in which order) */
    const char *key;  /* the signer's public key (minisign_key_read); NULL: that of Freeweights */
    const char *repo; /* whose files the list has to be of; NULL: not asked */
    const char *revision;    /* at which commit; NULL: not asked */
    const char *hub_cache;   /* as in clef_options */
    bool legacy;             /* take signatures without prehashing too */
    bool not_signed;         /* take a manifest without a signature */
    bool all;                /* files that the engine does not need have to be there too */
    unsigned jobs;           /* threads; 0: as many as this process may run on */
    clef_progress *progress; /* NULL: none; counts bytes, on any thread, one call at a time */
    void *user;
} verify_options;

typedef enum {
    VERIFY_RIGHT,
    VERIFY_ABSENT, /* listed and not there, and not needed */
    VERIFY_OTHER,  /* there and not listed, and nothing that the engine opens */
    VERIFY_FAULTS, /* from here on the folder is not what the list says */
    VERIFY_MISSING = VERIFY_FAULTS,
    VERIFY_CHANGED,
    VERIFY_LINKED, /* a link where a file is wanted, or one that leads out of the model */
    VERIFY_EXTRA,  /* there and not listed, and the engine might open it */
    VERIFY_UNREADABLE,
    VERIFY_UNSOUND, /* as listed, but not what a model has to be (verify_add) */
    VERIFY_N_STATES
} verify_state;

typedef struct {
    str path; /* relative to the folder, from the list or the folder; not safe to print */
    verify_state state;
    uint64_t size;           /* found; 0 where it was not looked at */
    char sha256[DIGEST_HEX]; /* found; empty where it was not summed */
    str detail;              /* what is wrong, in words that are safe to print */
} verify_file;

typedef enum {
    VERIFY_BUILTIN,   /* sums built into this program */
    VERIFY_SIGNED,    /* a list signed by `key_id` */
    VERIFY_NOT_SIGNED /* shows damage, not forgery */
} verify_trust;

/* {0} is safe to free. */
typedef struct {
    char *dir; /* the folder that was looked at */
    buf list;  /* the path of the list, or what the built-in table is called */
    manifest m;
    verify_trust trust;
    bool own_key; /* signed by a key that the caller gave */
    char key_id[MINISIGN_ID];
    buf comment;        /* the trusted comment */
    verify_file *files; /* [n_files]: first those of the list, in its order, then others */
    size_t n_files, cap;
    size_t n_of[VERIFY_N_STATES];
    size_t n_faults;
    uint64_t bytes; /* summed */
    double seconds; /* that took */
    arena mem;
} verify_result;

/* Finds the list, checks its signature, and holds the folder to it. CLEF_OK when the folder could
 * be held to the list, whatever came out: r->n_faults says it. Free with verify_free after a
 * failure too. */
clef_status verify_run(verify_result *r, const verify_options *o, clef_error *err);

/* Adds a fault. */
clef_status verify_add(verify_result *r, str path, verify_state state, const char *detail,
                       clef_error *err);
void verify_free(verify_result *r);

/* Appends the result as lines for people, or as one line of JSON. */
clef_status verify_report(buf *out, const verify_result *r, bool as_json, clef_error *err);

#endif
