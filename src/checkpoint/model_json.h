/* model_json.h - JSON that belongs to a model: read strictly, with bounded memory, and every
 * fault in it is a fault of the model (CLEF_ERR_FORMAT). */
#ifndef CHECKPOINT_MODEL_JSON_H
#define CHECKPOINT_MODEL_JSON_H

#include "text/json.h"

/* Parses `text`, which has to be one JSON object; `path` names it in errors. Repeated member names
 * are refused. The tree takes at most a few times the text, and never more than the text plus
 * about 100 MB, whatever the text holds. */
clef_status model_json_parse(const json **out, str text, const char *path, uint32_t max_depth,
                             arena *mem, clef_error *err);

/* The same for file `name` of model folder `dir` (hub_file), of at most `max_bytes`. *path is its
 * path for error sentences, in `mem`; it is set even when reading fails, unless memory ran out. */
clef_status model_json_read(const json **out, const char **path, const char *dir, const char *name,
                            size_t max_bytes, arena *mem, clef_error *err);

/* A value for an error sentence: a number's or string's text, else what kind of value it is. */
str model_json_show(const json *v);

#endif
