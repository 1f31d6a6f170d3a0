/* args.h - the command line as one table: what commands and options exist, how their values are
 * checked, and the words that the help texts and the man page are made of. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum {
    COMMAND_ASK,
    COMMAND_ENCODE,
    COMMAND_INFO,
    COMMAND_BENCH,
    COMMAND_PLAN,
    COMMAND_GATE,
    COMMAND_CONVERT,
    COMMAND_GET,
    COMMAND_VERIFY,
    COMMAND_MANIFEST,
    COMMAND_SIGN,
    COMMAND_SERVE,
    COMMAND_HELP,
    N_COMMANDS,
    COMMAND_VERSION = N_COMMANDS /* the option --version alone; not in the table */
} command_id;

typedef enum {
    OPTION_MODEL,
    OPTION_TOKENIZER,
    OPTION_REQUEST,
    OPTION_OUT,
    OPTION_PRETTY,
    OPTION_LOGITS,
    OPTION_CONFIDENCE,
    OPTION_DIGITS,
    OPTION_MAX_LENGTH,
    OPTION_MAX_STATE_TOKENS,
    OPTION_TRUNCATE,
    OPTION_CONTROL_TOKENS,
    OPTION_IMAGE,
    OPTION_VIDEO,
    OPTION_GRID,
    OPTION_MAX_PIXELS,
    OPTION_EXIF_ROTATE,
    OPTION_THREADS,
    OPTION_CHUNK,
    OPTION_KERNELS,
    OPTION_PRECISION,
    OPTION_SPLIT,
    OPTION_PROGRESS,
    OPTION_TOKENS,
    OPTION_REPEATS,
    OPTION_BATCH,
    OPTION_QUESTIONS,
    OPTION_OPTIONS,
    OPTION_ANY_MEMORY,
    OPTION_FIXTURES,
    OPTION_AGAINST,
    OPTION_REQUESTS,
    OPTION_IMAGES,
    OPTION_REPORT,
    OPTION_RED,
    OPTION_MAX_DP,
    OPTION_MEAN_DP,
    OPTION_MARGIN,
    OPTION_FORMAT,
    OPTION_LAYERS_16BIT,
    OPTION_TABLES,
    OPTION_JOBS,
    OPTION_DIR,
    OPTION_REVISION,
    OPTION_MANIFEST,
    OPTION_KEY,
    OPTION_SOURCE,
    OPTION_INCLUDE,
    OPTION_ALL,
    OPTION_ALLOW_HTTP,
    OPTION_REPO,
    OPTION_DEEP,
    OPTION_UNSIGNED,
    OPTION_LEGACY,
    OPTION_FILE,
    OPTION_SECRET_KEY,
    OPTION_COMMENT,
    OPTION_GENERATE,
    OPTION_NO_PASSWORD,
    OPTION_HOST,
    OPTION_PORT,
    OPTION_API_KEY,
    OPTION_API_KEY_FILE,
    OPTION_SERVED_NAME,
    OPTION_ALIAS,
    OPTION_ANY_MODEL,
    OPTION_STRICT,
    OPTION_ALLOW_HOST,
    OPTION_ALLOW_ORIGIN,
    OPTION_QUEUE,
    OPTION_BATCH_TOKENS,
    OPTION_DEADLINE,
    OPTION_CACHE_BYTES,
    OPTION_ANSWER_CACHE_BYTES,
    OPTION_ANSWER_CACHE_SECONDS,
    OPTION_MAX_BODY,
    OPTION_MAX_DEPTH,
    OPTION_MAX_QUESTIONS,
    OPTION_MAX_OPTIONS,
    OPTION_MAX_LEVELS,
    OPTION_MAX_IMAGES,
    OPTION_MAX_IMAGE_BYTES,
    OPTION_MAX_IMAGE_PIXELS,
    OPTION_MAX_MEDIA_PIXELS,
    OPTION_MAX_BATCH,
    OPTION_MAX_CONNECTIONS,
    OPTION_HEAD_SECONDS,
    OPTION_IDLE_SECONDS,
    OPTION_WRITE_SECONDS,
    OPTION_GRACE,
    OPTION_LOG,
    OPTION_LOG_FORMAT,
    OPTION_LOG_BODIES,
    OPTION_WARMUP,
    OPTION_CHECK,
    OPTION_CONFIG,
    OPTION_JSON,
    OPTION_MAN,
    OPTION_HELP,
    N_OPTIONS
} option_id;

typedef enum {
    VALUE_NONE,
    VALUE_TEXT,
    VALUE_NUMBER,
    VALUE_SHARE, /* a decimal, more than 0 and at most 1 */
    VALUE_CHOICE,
    VALUE_LIST,  /* one argument or more, up to the next that begins with two dashes */
    VALUE_REPEAT /* one argument each time it is given: OPTION_IMAGE, OPTION_VIDEO */
} value_kind;

enum { MAX_CHOICES = 5 };

typedef struct {
    const char *name; /* without the dashes */
    value_kind kind;
    const char *value; /* how the help names the value; NULL for VALUE_NONE and VALUE_CHOICE */
    uint64_t min, max; /* VALUE_NUMBER */
    const char *choices[MAX_CHOICES + 1]; /* VALUE_CHOICE, up to the first NULL */
    unsigned commands;                    /* a bit for each command_id that takes it */
    const char *help;                     /* one paragraph */
} option_spec;

typedef struct {
    const char *name, *synopsis, *summary;
    const char *text;        /* paragraphs with an empty line between them */
    const char *examples[4]; /* pairs of a sentence and a command line, up to the first NULL */
} command_spec;

typedef struct {
    const char *title, *text;
} help_section;

extern const command_spec command_table[N_COMMANDS];
extern const option_spec option_table[N_OPTIONS];
extern const help_section help_sections[]; /* up to a NULL title */

typedef struct {
    bool given;
    const char *text;
    uint64_t number;         /* VALUE_NUMBER */
    double share;            /* VALUE_SHARE */
    const char *const *list; /* VALUE_LIST: [n_list] */
    size_t n_list;
    unsigned choice; /* VALUE_CHOICE: its index */
} option_value;

enum { MAX_REPEATED = 64 };

typedef struct {
    const char *text[MAX_REPEATED];
    size_t n;
} repeated_values;

typedef struct {
    command_id command;
    command_id topic; /* COMMAND_HELP: what about; N_COMMANDS for everything */
    option_value options[N_OPTIONS];
    repeated_values images, videos; /* VALUE_REPEAT */
} args;

/* Reads the command line into *out, whose strings stay those of argv. CLEF_ERR_INPUT names the
 * argument that is wrong, and the nearest spelling of an unknown one. */
clef_status args_parse(args *out, int argc, char **argv, clef_error *err);

/* Takes options that were not given, "--name=value" or "--name" with its values behind it, from
 * argv[0] on, as if they stood on the command line of out's command; what was given there stays.
 * The strings have to outlive *out. */
clef_status args_add(args *out, int argc, char **argv, clef_error *err);

#endif
