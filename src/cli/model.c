/* model.c - see model.h. The order of the environment variables is huggingface_hub's. */
#include "cli/model.h"

#include <assert.h>
#include <stdlib.h>

#include "fetch/get.h"

/* The choices of the table stand in the order of the library's enumerators. */
static_assert(CLEF_TRUNCATE_NONE == 0 && CLEF_TRUNCATE_STATE == 1, "--truncate none state");
static_assert(CLEF_CONTROL_PLAIN == 0 && CLEF_CONTROL_REFERENCE == 1 && CLEF_CONTROL_REJECT == 2,
              "--control-tokens plain reference reject");
static_assert(CLEF_PRECISION_EXACT == 0 && CLEF_PRECISION_FAST == 1, "--precision exact fast");
static_assert(CLEF_CONFIDENCE_TOP == 0 && CLEF_CONFIDENCE_TYPESAFE == 1 &&
                  CLEF_CONFIDENCE_ENTROPY == 2,
              "--confidence top typesafe entropy");
static_assert(CLEF_GRID_NATIVE == 0 && CLEF_GRID_256 == 1 && CLEF_GRID_448 == 2,
              "--grid native 256 448");

void model_hub_cache(buf *out) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = getenv(places[i].variable);
        if (folder == NULL || *folder == '\0') continue;
        const char *home = getenv("HOME");
        if (folder[0] == '~' && folder[1] == '/' && home != NULL) { /* as huggingface_hub does */
            buf_add_text(out, home);
            folder++;
        }
        buf_add_text(out, folder);
        buf_add_text(out, places[i].below);
        return;
    }
}

clef_options model_options(const args *a, const buf *hub_cache) {
    const option_value *o = a->options;
    return (clef_options){.model = o[OPTION_MODEL].text,
                          .hub_cache = hub_cache->n > 0 ? hub_cache->p : NULL,
                          .threads = (unsigned)o[OPTION_THREADS].number,
                          .chunk = (uint32_t)o[OPTION_CHUNK].number,
                          .kernels = o[OPTION_KERNELS].text,
                          .precision = (clef_precision)o[OPTION_PRECISION].choice,
                          .split = o[OPTION_SPLIT].text,
                          .tokenizer = o[OPTION_TOKENIZER].text};
}

clef_ask_options model_ask_options(const args *a) {
    const option_value *o = a->options;
    return (clef_ask_options){.max_length = (uint32_t)o[OPTION_MAX_LENGTH].number,
                              .cap_state = o[OPTION_MAX_STATE_TOKENS].given,
                              .max_state_tokens = (uint32_t)o[OPTION_MAX_STATE_TOKENS].number,
                              .truncate = (clef_truncate)o[OPTION_TRUNCATE].choice,
                              .control_tokens = (clef_control)o[OPTION_CONTROL_TOKENS].choice,
                              .confidence = (clef_confidence)o[OPTION_CONFIDENCE].choice,
                              .digits = o[OPTION_DIGITS].choice == 1 ? 7 : 4,
                              .any_memory = o[OPTION_ANY_MEMORY].given,
                              .images = a->images.text,
                              .n_images = a->images.n,
                              .videos = a->videos.text,
                              .n_videos = a->videos.n,
                              .read_files =
                                  a->command == COMMAND_ASK || a->command == COMMAND_ENCODE,
                              .grid = (clef_grid)o[OPTION_GRID].choice,
                              .max_pixels = o[OPTION_MAX_PIXELS].number,
                              .max_decoded_pixels = o[OPTION_MAX_MEDIA_PIXELS].number,
                              .exif_rotate = o[OPTION_EXIF_ROTATE].given};
}

void model_add_advice(const args *a, clef_error *err) {
    const char *model = a->options[OPTION_MODEL].text;
    if (a->command == COMMAND_GET || model == NULL) return;
    buf hub_cache = {0}, text = {0};
    model_hub_cache(&hub_cache);
    buf_add_text(&text, err->text);
    const size_t before = text.n;
    if (hub_cache.n > 0 && !hub_cache.failed) get_advice(&text, model, hub_cache.p);
    if (!text.failed && text.n > before) clef_fail(err, err->status, "%s", text.p);
    buf_free(&hub_cache);
    buf_free(&text);
}
