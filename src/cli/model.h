/* model.h - from the command line to the options of the library. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "base/buf.h"
#include "clef.h"
#include "cli/args.h"

/* The folder of the local hub cache, from the environment; empty when it names none. */
void model_hub_cache(buf *out);

/* The options to open the model that `a` names. `hub_cache` is what model_hub_cache gave and has to
 * outlive the result. */
clef_options model_options(const args *a, const buf *hub_cache);

/* The options of one request; `a` has to outlive them. */
clef_ask_options model_ask_options(const args *a);

/* To the sentence of a failure that is due to a model that is not here, adds which command fetches
 * it. Nothing is ever fetched by another command. */
void model_add_advice(const args *a, clef_error *err);

#endif
