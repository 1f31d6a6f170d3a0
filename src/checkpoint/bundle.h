/* bundle.h - bundle.json, which makes a converted folder one whole: what it was made from, and the
 * sums of what belongs to it.
 *
 * The folder is an ordinary checkpoint, so one loader opens it and a release:
 *   config.json, joint_head.safetensors, tokenizer files, ...  the source's bytes
 *   model-0000x-of-0000y.safetensors and their index           codes and scales, the rest untouched
 *   bundle.json                                                below
 *   SHA256SUMS                                                 of every file above
 *
 * A weight of codes is `X.weight` (checkpoint/codes.h) with `X.weight_scale` F16 [out, in / 32].
 * bundle.json has its members in this order and tells of no time or place:
 *   {"format": "clef-bundle", "version": 2, "converter",
 *    "id": one sum over the format, the tables, the 16-bit layers and the sums of the source, which
 *          stands in the header of every shard too,
 *    "source": [{"path", "bytes", "sha256"}],
 *    "quantisation": {"format", "tables", "scheme", "block", "axis", "codes", "rounding",
 *        "scale_dtype", "layers_16bit",
 *        "allocation": of a mixed format [{"layers", "kind", "format", "relative_error_int4", ..6,
 *                       ..8 of a sample of rows, "expected_loss"}]; checkpoint/allot.h,
 *        "modules": [{"name", "format", "scales_sha256", "relative_error", "largest_error",
 *                     "clipped"}]},
 *    "files": [{"path", "bytes", "sha256", "header_sha256" of shards}]}
 * Unknown members are ignored; another format or version is refused. */
#ifndef CHECKPOINT_BUNDLE_H
#define CHECKPOINT_BUNDLE_H

#include "base/arena.h"
#include "checkpoint/safetensors.h"
#include "text/json.h"

#define BUNDLE_NAME "bundle.json"
#define BUNDLE_FORMAT "clef-bundle"
enum { BUNDLE_VERSION = 2 };

/* Holds folder `dir`, whose model is open, to its bundle.json: every file there with its size and
 * sum (of shards the header's sum, which holds the conversion's id, and the sums of all scales),
 * and no weight of codes that it does not list. A folder without bundle.json passes when it has no
 * such weights; *out is then NULL, else the file's content, in `mem`. */
clef_status bundle_check(const json **out, const char *dir, const safetensors *model, arena *mem,
                         clef_error *err);

#endif
