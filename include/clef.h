/* clef.h - the public interface of libclef: typed questions about a state, answered by a decision
 * model (Cloudflare/clef-flash, clef) from one prefill.
 *
 *     clef_engine *engine = NULL;
 *     clef_error err = {0};
 *     clef_options options = {.model = "clef-flash"};
 *     if (clef_open(&engine, &options, &err) != CLEF_OK) die(err.text);
 *     clef_answer *answer = NULL;
 *     if (clef_ask(engine, NULL, body, body_len, &answer, &err) != CLEF_OK) die(err.text);
 *     puts(clef_answer_json(answer, NULL));
 *     clef_answer_free(answer);
 *     clef_close(engine);
 *
 * Threads. Every function may be called from any thread. Requests to one engine wait in a queue and
 * share its steps; no call may begin once clef_close has. The library keeps no mutable globals,
 * never prints, exits, installs a signal handler or reads the environment.
 *
 * Memory. Whatever a call hands out through a `**out` belongs to the caller, who gives it back with
 * the free function named beside it. On failure `*out` is left as it was and nothing leaks. Free
 * and close functions accept NULL.
 *
 * Errors. A call that can fail returns a clef_status and writes one sentence into `err` (which may
 * be NULL): where, what was found, what was wanted; no full stop, valid UTF-8, one line.
 *
 * Bits. For a given model and request the logits are the same bits on every run, for any number of
 * threads, any chunk, any kernel table of this library, alone or in a batch; each precision has its
 * own.
 *
 * Text is UTF-8 with a length in bytes; zero bytes are ordinary text. */
#ifndef CLEF_H
#define CLEF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLEF_API __attribute__((visibility("default")))

#define CLEF_VERSION "0.1.0"

typedef enum {
    CLEF_OK = 0,
    CLEF_ERR_INPUT,       /* the request or an option is wrong */
    CLEF_ERR_LIMIT,       /* well formed, but longer or larger than a stated limit */
    CLEF_ERR_FORMAT,      /* a model file is not what it has to be */
    CLEF_ERR_IO,          /* the system refused to open, read or map a file */
    CLEF_ERR_UNSUPPORTED, /* known, but not part of this build or this version */
    CLEF_ERR_CANCELLED,   /* the progress callback asked to stop */
    CLEF_ERR_MEMORY,      /* out of memory */
    CLEF_ERR_INTERNAL,    /* a fault of the library, or weights that give no finite answer */
    CLEF_ERR_BUSY,        /* as many requests wait as may wait: ask again later */
    CLEF_ERR_DEADLINE     /* the request's time was up before its answer was there */
} clef_status;

typedef struct {
    clef_status status;
    char text[1000]; /* zero-terminated; longer sentences end in "..." */
} clef_error;

typedef struct clef_engine clef_engine;
typedef struct clef_answer clef_answer;

/* ---- opening ------------------------------------------------------------------------------ */

typedef enum {
    CLEF_PRECISION_EXACT = 0, /* weights as they are stored, arithmetic in f32 */
    CLEF_PRECISION_FAST /* sums integers where linears are int8, int6 or int4: their inputs are
                         * rounded, in blocks of 32, to 8 bits or, where that costs most, to 16.
                         * Refused when the model has no such linears */
} clef_precision;

typedef struct {
    const char *model;     /* a folder in the released layout, or "Org/Name" in the hub cache */
    const char *hub_cache; /* folder that holds models--Org--Name; NULL: names are not looked up */
    unsigned threads;      /* 0: as many as this process may run on */
    uint32_t chunk;        /* rows computed per step, 1..4096; 0: 512 */
    /* "scalar", "avx2", "avx512", "avx512vnni", "neon", "neondot"; NULL: the fastest one that
     * this CPU runs */
    const char *kernels;
    const char *split; /* "qwen2" or "qwen35" overrides tokenizer.json's pattern; NULL: as stated */
    int tokenizer_only;    /* nonzero: open tokenizer.json alone; only clef_encode works then */
    const char *tokenizer; /* tokenizer_only: this file instead of the model's; model may be NULL */
    uint32_t queue;        /* calls that may wait, a batch counts as one; 0: 64 */
    uint64_t cache_bytes;  /* kept for states that come again; 0: nothing is kept */
    uint64_t picture_bytes; /* kept of computed pictures for equal ones; 0: 64 MiB, 1: nothing */
    uint32_t
        batch_tokens; /* of the requests that run beside the one that waited longest; 0: 4096 */
    clef_precision precision;
} clef_options;

/* Opens a model: maps its weights (nothing is copied but the small vectors), loads its tokenizer,
 * starts the worker threads. `options->model` is required unless `tokenizer` names a file. Free
 * with clef_close. */
CLEF_API clef_status clef_open(clef_engine **out, const clef_options *options, clef_error *err);
/* Requests that other threads still have in the queue fail with CLEF_ERR_CANCELLED; returns when
 * those calls have. */
CLEF_API void clef_close(clef_engine *engine);

/* ---- asking ------------------------------------------------------------------------------- */

typedef enum {
    CLEF_TRUNCATE_NONE = 0, /* a record longer than max_length is refused, naming both numbers */
    CLEF_TRUNCATE_STATE     /* the end of the state is cut, as the reference does */
} clef_truncate;

typedef enum {
    CLEF_CONTROL_PLAIN = 0, /* control-token spellings in user text are ordinary text */
    CLEF_CONTROL_REFERENCE, /* they become control tokens, as in the reference */
    CLEF_CONTROL_REJECT     /* they are refused, naming the spelling and the field */
} clef_control;

typedef enum {
    CLEF_CONFIDENCE_TOP = 0,  /* the largest probability (vendor reference) */
    CLEF_CONFIDENCE_TYPESAFE, /* TypeSafe's formula: 0 at uniform, 1 at certain */
    CLEF_CONFIDENCE_ENTROPY   /* 1 - H / ln n */
} clef_confidence;

typedef enum {
    CLEF_GRID_NATIVE = 0, /* about the picture's own size and shape */
    CLEF_GRID_256,        /* 256 x 256 pixels, 64 tokens, whatever its shape */
    CLEF_GRID_448         /* 448 x 448 pixels, 196 tokens */
} clef_grid;

/* Called on the asking thread with tokens done and to do: after each of the request's steps, and
 * about every 50 ms while it waits or runs, then with the same numbers as before; and with 0 and 0
 * as often while its pictures are read, before all that, though not while one is resized or a WebP
 * is decoded. A picture's tokens count twice: the tower sees them, then the model. Return nonzero
 * to stop: the request leaves the queue at once, or the run after the step under way. The request's
 * next step waits for the callback; other requests do not. */
typedef int clef_progress(void *user, size_t done, size_t total);

/* All zero is the default. */
typedef struct {
    uint32_t max_length; /* tokens of a record; 0: 16384, or the model's positions where fewer */
    int cap_state;       /* nonzero: keep at most max_state_tokens of the state, cut its end */
    uint32_t max_state_tokens; /* 0 keeps none; ignored without cap_state */
    clef_truncate truncate;
    clef_control control_tokens;
    clef_confidence confidence;
    unsigned digits; /* decimals of printed probabilities: 4 or 7; 0: 4 */
    int any_memory;  /* nonzero: run even when the plan says that memory will not do (CLEF_ERR_LIMIT
                        otherwise, with both figures) */
    clef_progress *progress; /* NULL: none */
    void *user;              /* handed to progress */
    double timeout_s; /* CLEF_ERR_DEADLINE when there is no answer by then; 0: waits for ever */
    const char *cache_key; /* what is kept of states is found again under the same key only; NULL:
                              the empty key, which all share who give none */
    size_t cache_key_len;
    /* Pictures and video. Files named here are shown behind those of the request. */
    const char *const *images, *const *videos; /* [n_images], [n_videos] paths */
    size_t n_images, n_videos;
    int read_files; /* nonzero: file: URLs in the request are read too; not for strangers' */
    clef_grid grid;
    uint64_t max_pixels; /* pictures, not videos, are made at most this large, but for the rounding
                            of their sides to whole tokens; 0: the model's bound */
    int exif_rotate;     /* nonzero: turn pictures as their files say; the reference does not */
    uint64_t max_picture_bytes, max_picture_pixels; /* of a file; more is CLEF_ERR_LIMIT; 0: 64 MiB
                                                       and 178,956,970 */
    uint64_t max_decoded_pixels; /* of all pictures and frames of a call's requests together, as
                                    they are stored or resized, whichever is more; beyond that
                                    CLEF_ERR_LIMIT; 0: no bound */
} clef_ask_options;

/* Answers one request (JSON; README.md has its members). `options` may be NULL. Free the answer
 * with clef_answer_free. The text of the answer equals json.dumps(answer, ensure_ascii=False) of
 * the vendor's reference. */
CLEF_API clef_status clef_ask(clef_engine *engine, const clef_ask_options *options,
                              const char *body, size_t body_len, clef_answer **out,
                              clef_error *err);

typedef struct {
    const char *body;
    size_t body_len;
} clef_request;

/* Answers `n` requests in shared steps; each gets the bits that it has alone. out[i] and errs[i]
 * (both [n], errs may be NULL) tell about request i: a wrong request leaves out[i] NULL and does
 * not disturb the others. The result is CLEF_OK when every request was answered, else the status of
 * the first one that was not. Free every out[i]. */
CLEF_API clef_status clef_ask_batch(clef_engine *engine, const clef_ask_options *options,
                                    const clef_request *requests, size_t n, clef_answer **out,
                                    clef_error *errs);

/* Tokenises without computing. The answer's JSON is {"ids":[...],"questions":[{"id","type","span",
 * "options":[{"id","span"}]}],"tokens":{"prefix","media","state","schema","suffix"}}; spans are
 * half-open in tokens, options stand in scoring order. Works on an engine opened tokenizer_only. */
CLEF_API clef_status clef_encode(clef_engine *engine, const clef_ask_options *options,
                                 const char *body, size_t body_len, clef_answer **out,
                                 clef_error *err);

/* Zero-terminated JSON without a final line feed, owned by the answer; `len` may be NULL. */
CLEF_API const char *clef_answer_json(const clef_answer *answer, size_t *len);

/* One option of one question, questions in request order, options in scoring order. The pointers
 * belong to the answer; ids may hold zero bytes. */
typedef struct {
    const char *question, *option;
    size_t question_len, option_len;
    float logit, probability;
} clef_option;

/* All options of an answer, `*n` of them; none after clef_encode. */
CLEF_API const clef_option *clef_answer_options(const clef_answer *answer, size_t *n);
CLEF_API void clef_answer_free(clef_answer *answer);

/* What an answer took. Requests of a batch run together: each has the times of all. After
 * clef_encode only tokens, truncated_tokens and encode_s. */
typedef struct {
    uint64_t tokens;           /* of the record */
    uint64_t cached_tokens;    /* of them not computed but found */
    uint64_t truncated_tokens; /* of the state, left out */
    double encode_s;           /* JSON to token ids */
    double queue_s;            /* waiting for its first step */
    uint64_t queue_steps;      /* steps of other requests that ended meanwhile */
    double prefill_s;          /* from there to its logits */
} clef_ask_stats;
CLEF_API void clef_answer_stats(const clef_answer *answer, clef_ask_stats *out);

/* ---- looking and measuring ---------------------------------------------------------------- */

/* Describes a model folder as text for people (json = 0) or as one JSON object (json = 1): sizes,
 * layers, parameters, dtypes, head, tokenizer, and whatever is missing or would not load. Succeeds
 * on a damaged folder too, and says what is wrong with it; *loads tells whether clef_open would
 * succeed. Free *text with clef_text_free. */
CLEF_API clef_status clef_info(const clef_options *options, int json, char **text, int *loads,
                               clef_error *err);
CLEF_API void clef_text_free(char *text);

typedef struct {
    uint32_t tokens;  /* length of the measured record; 0: 512 */
    unsigned repeats; /* medians over this many runs; 0: 5 */
    clef_progress *progress;
    void *user;
} clef_bench_options;

enum {
    CLEF_PART_LINEARS,
    CLEF_PART_ATTENTION,
    CLEF_PART_DELTA,
    CLEF_PART_HEAD,
    CLEF_PART_OTHER,
    CLEF_N_PARTS
};

typedef struct {
    unsigned threads, repeats;
    uint32_t tokens, chunk;
    char kernels[16];
    double fma_gflops;   /* ceiling: register-only fused multiply-adds on all threads */
    double read_gbps;    /* ceiling: streaming reads, 1e9 bytes a second, all threads */
    double tokens_per_s; /* median prefill */
    double seconds;      /* median prefill */
    double seconds_min, seconds_max;
    struct {
        double seconds, gflops,
            share; /* medians; share of the prefill; gflops 0 where not counted */
    } parts[CLEF_N_PARTS];
    double open_s; /* opening without the tokenizer */
    double tokenizer_load_s;
    double tokenizer_mbps; /* 1e6 bytes of English text a second, one thread */
    double resident_bytes; /* most memory seen after a step, beyond all mapped files */
} clef_bench_result;

/* Measures ceilings and one prefill in the same run. Computes tokens x (repeats + 1) rows: the
 * first run brings the weights into memory and is not counted. */
CLEF_API clef_status clef_bench(const clef_options *options, const clef_bench_options *bench,
                                clef_bench_result *out, clef_error *err);

/* What an engine does now, and counts since clef_open. */
typedef struct {
    uint32_t waiting, running; /* calls: before their first step, and after it */
    uint32_t queue;            /* that may wait */
    uint64_t answered, failed; /* requests with logits, and without for any reason but these: */
    uint64_t refused, cancelled, expired; /* CLEF_ERR_BUSY, _CANCELLED, _DEADLINE */
    uint64_t steps, computed_tokens;      /* of all requests */
    uint64_t cache_bytes, cache_max_bytes;
    uint64_t cache_entries;               /* states kept */
    uint64_t cache_hits, cache_misses;    /* requests with and without something found */
    uint64_t cached_tokens;               /* found */
    uint64_t cache_stored, cache_dropped; /* states kept ever, and given up for room */
} clef_load;
CLEF_API void clef_engine_stats(clef_engine *engine, clef_load *out);

/* ---- formats ------------------------------------------------------------------------------ */

/* What clef_convert makes of a checkpoint's weights. */
typedef enum {
    CLEF_FORMAT_INT8MIX = 0, /* int8 linears, but the first layers stay at 16 bit */
    CLEF_FORMAT_INT8,        /* int8 linears in all layers */
    CLEF_FORMAT_INT6,        /* int6 and wider where it matters: 7.5 bits a weight at most */
    CLEF_FORMAT_INT4MIX,     /* int4 and wider where it matters: 5.5 bits a weight at most */
    CLEF_FORMAT_INT4         /* int4 linears in all layers, which changes answers: for comparison */
} clef_format;

typedef enum {
    CLEF_TABLES_KEEP = 0, /* the embedding and lm_head stay as they are */
    CLEF_TABLES_INT8      /* they become int8 */
} clef_tables;

/* ---- planning memory ---------------------------------------------------------------------- */

/* All zero is the default. */
typedef struct {
    uint32_t tokens;             /* of a record; 0: 512 */
    uint32_t batch;              /* records asked together; 0: 1 */
    uint32_t questions, options; /* of a record, options over all questions; 0: 4 and 16 */
    int converted;               /* nonzero: as if the model were converted to what follows */
    clef_format format;
    clef_tables tables;
    const uint32_t (*images)[2]; /* [n_images] width and height of pictures of each record, which
                                  * come on top of its tokens; NULL: none */
    size_t n_images;
} clef_plan_options;

/* Bytes. Mapped files are shared and given back when memory is short; the rest is this process's
 * own, and total_bytes is the most of it at any moment. */
typedef struct {
    unsigned threads;
    uint32_t tokens, batch, questions, options, chunk;
    uint32_t live;            /* records whose state is held at once */
    uint64_t mapped_bytes;    /* weights; of a mixed format the most that it may take */
    uint64_t opened_bytes;    /* all that this process holds once the model is open */
    uint64_t scratch_bytes;   /* worker threads: until clef_close */
    uint64_t workspace_bytes; /* per run */
    uint64_t sequence_bytes;  /* per live record: keys, values, states */
    uint64_t head_bytes;      /* per live record */
    uint64_t finish_bytes;    /* one record at a time, after its sequence */
    uint64_t request_bytes;   /* all requests: text, tree, ids, pixels */
    uint64_t prefix_bytes;    /* to keep a state of that length for records that have it again */
    uint64_t cache_bytes;     /* for all that is kept, as clef_options say */
    uint64_t total_bytes;     /* needed beside the mapped files */
    uint64_t available_bytes; /* what this process may still take; UINT64_MAX: no limit is known */
    char limit[64];           /* what sets it */
    uint64_t picture_bytes;   /* one record's: the tower at work, which is gone when the record's
                               * sequence comes, and the rows of its pictures */
} clef_plan_result;

/* Says what a run needs before it starts. Opens the model, computes nothing. Either of the first
 * two may have defaults; `plan` may be NULL. */
CLEF_API clef_status clef_plan(const clef_options *options, const clef_plan_options *plan,
                               clef_plan_result *out, clef_error *err);

/* ---- accepting weights -------------------------------------------------------------------- */

/* All zero is the default. */
typedef struct {
    double margin;  /* answers are compared where the oracle's two best differ by more; 0: 0.02 */
    double max_dp;  /* the most that any probability may differ by; 0: 0.02 */
    double mean_dp; /* the most for the mean over runs of a run's mean difference; 0: 0.002 */
    int red;        /* nonzero: also commit known faults, each of which has to be caught */
    const char *images; /* folder of the pictures that runs name, which are checked where the file
                         * has their SHA-256; NULL: such runs are not compared */
    clef_progress *progress;
    void *user;
} clef_gate_options;

/* Replays recorded runs of a reference: files of the schema "coreai-clef-flash-fixtures/1", whose
 * form testdata/README.md describes. Ids and spans have to be equal, then the bars above hold, then
 * the first run repeated at the end has to give the same bits. What a file does not hold (withheld
 * ids, pictures) is named as not checked, and a check that had nothing to look at does not hold.
 * *holds is nonzero when every check holds; *table is for people (what comes from the files is made
 * safe to print), *report is JSON with every run. Free both with clef_text_free. `options` may be
 * NULL. */
CLEF_API clef_status clef_gate(clef_engine *engine, const clef_gate_options *options,
                               const char *const *fixtures, size_t n_fixtures, int *holds,
                               char **table, char **report, clef_error *err);

/* Answers the requests in the files (each a request or an array of requests) with two models and
 * says how their probabilities differ: mean, largest, changed answers, by question type. Free the
 * texts as above. `options` and its bars: only progress is used. */
CLEF_API clef_status clef_compare(clef_engine *engine, clef_engine *other,
                                  const clef_gate_options *options, const char *const *requests,
                                  size_t n_requests, char **table, char **report, clef_error *err);

/* ---- looking at every number -------------------------------------------------------------- */

/* Called with one sentence about each thing that is wrong. */
typedef void clef_finding(void *user, const char *sentence);

/* All zero is the default, but then nobody hears what is wrong. */
typedef struct {
    unsigned jobs;           /* threads; 0: as many as this process may run on */
    clef_progress *progress; /* NULL: none; counts bytes, and may be called on any thread */
    clef_finding *finding;   /* NULL: none; on the calling thread */
    void *user;              /* handed to both */
} clef_scan_options;

/* Opens the model as clef_open does, which binds every tensor, and then looks at every number in
 * its files: NaN and infinity are findings, a sentence for each tensor that holds some. *sound is
 * nonzero when there was none; a model that does not open is a finding too. `scan` may be NULL. */
CLEF_API clef_status clef_scan(const clef_options *options, const clef_scan_options *scan,
                               int *sound, clef_error *err);

/* ---- converting --------------------------------------------------------------------------- */

/* Beside `model` and `out` all zero is the default. */
typedef struct {
    const char *model;     /* as in clef_options */
    const char *hub_cache; /* as in clef_options */
    const char *out;       /* the folder to make; it must not exist, its parent must */
    clef_format format;
    const char *layers_16bit; /* "0-11" or "0,3,5-7": layers that stay at 16 bit; NULL: of int8mix
                               * the first 12 of 32 and the same share of other depths, else none.
                               * Not for int8 and int4, which have none */
    clef_tables tables;
    unsigned jobs;           /* threads; 0: as many as this process may run on */
    clef_progress *progress; /* NULL: none; counts bytes */
    void *user;
} clef_convert_options;

typedef struct {
    uint64_t source_bytes, written_bytes; /* all files read, and all of the folder */
    uint64_t n_linears, n_converted; /* of the backbone; those that became codes, with tables */
    double bits_per_weight;          /* over all linears of the backbone, scales included */
    double relative_error;           /* rms of what the codes lose over rms of the weights */
    double worst_error;              /* the most that one matrix loses, as above */
    char worst[160];                 /* its name */
} clef_convert_result;

/* Writes a checkpoint folder whose backbone linears are codes of 8, 6 or 4 bits (blocks of 32 along
 * the input axis with F16 scales); clef_open takes it like the released one. The source is only
 * read. The bytes written depend on the source's bytes, format, tables and layers alone. The folder
 * is made as "OUT.partial" and renamed when complete; after an interruption the same call goes on
 * with what is there. `result` may be NULL. */
CLEF_API clef_status clef_convert(const clef_convert_options *options, clef_convert_result *result,
                                  clef_error *err);

/* The version of the library at run time, CLEF_VERSION of its build. */
CLEF_API const char *clef_version(void);

#ifdef __cplusplus
}
#endif

#endif
