/* bundle.h - bundle.json, which makes a folder of int8 weights one whole: what it was made from,
 * and the sums of what belongs to it. weights-and-distribution section 8. */
#ifndef CHECKPOINT_BUNDLE_H
#define CHECKPOINT_BUNDLE_H

#include "base/arena.h"
#include "checkpoint/safetensors.h"
#include "text/json.h"

#define BUNDLE_NAME "bundle.json"
#define BUNDLE_FORMAT "clef-bundle"
enum { BUNDLE_VERSION = 1 };

/* Holds folder `dir`, whose model is open, to its bundle.json: every file there with its size and
 * sum (of shards the header's sum, which holds the conversion's id, and the sums of all scales),
 * and no int8 weight that it does not list. A folder without bundle.json passes when it has no int8
 * weights; *out is then NULL, else the file's content, in `mem`. */
clef_status bundle_check(const json **out, const char *dir, const safetensors *model, arena *mem,
                         clef_error *err);

#endif
