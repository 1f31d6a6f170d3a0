/* output.h - files of a folder that is being made: each gets its name only when it is complete, on
 * the disk, and read back. */
#ifndef CHECKPOINT_OUTPUT_H
#define CHECKPOINT_OUTPUT_H

#include "base/digest.h"
#include "base/str.h"

/* {0} is safe to abandon. */
typedef struct {
    int fd;
    char *path, *part;
    digest *sum;
    uint64_t bytes;
} output;

/* Begins file `name` of folder `dir`, replacing what a killed run left. */
clef_status output_open(output *o, const char *dir, const char *name, clef_error *err);
clef_status output_write(output *o, const void *bytes, size_t n, clef_error *err);

/* Completes the file; hex gets its sum. The output is closed, whether this succeeds or not. */
clef_status output_finish(output *o, char hex[DIGEST_HEX], clef_error *err);

/* Gives up a file that was not finished. */
void output_abandon(output *o);

/* A whole small file. */
clef_status output_text(const char *dir, const char *name, str text, char hex[DIGEST_HEX],
                        clef_error *err);

/* What to do about errno `why` of a change to the disk: "; and a clause" that ends a sentence, or
 * "".
 */
const char *output_advice(int why);

/* What was done to the entries of folder `dir` reaches the disk. */
clef_status output_sync_folder(const char *dir, clef_error *err);

#endif
