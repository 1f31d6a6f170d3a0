/* hub.h - finding a model's folder and its files: a path as it is, or a name in the cache that
 * huggingface_hub keeps. Reads only, never downloads. hub.c has the layout of the cache. */
#ifndef CHECKPOINT_HUB_H
#define CHECKPOINT_HUB_H

#include "base/status.h"
#include "base/str.h"

/* Whether `name` has the form Org/Name as the hub allows it, which is safe as a part of a path. */
bool hub_is_name(str name);

/* The folder of `model`: an existing folder is taken as it is; else "Org/Name" is looked up in
 * `hub_cache` (the folder that holds models--Org--Name; NULL: names are not looked up). *dir is
 * given back with free(). Errors say what was looked for and where. */
clef_status hub_resolve(char **dir, const char *model, const char *hub_cache, clef_error *err);

/* The name and the commit of the model when folder `dir` is a snapshot of a hub cache,
 * ".../models--Org--Name/snapshots/COMMIT"; both stay NULL when it is not. Given back with free().
 */
clef_status hub_snapshot(char **repo, char **commit, const char *dir, clef_error *err);

/* The path of file `name` of model folder `dir` with all symlinks resolved. It has to stay inside
 * the folder, or, when the folder is a snapshot of a hub cache, inside that model's part of the
 * cache, where the snapshot's links lead. *path is given back with free(). */
clef_status hub_file(char **path, const char *dir, const char *name, clef_error *err);

#endif
