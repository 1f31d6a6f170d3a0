/* media_fuzz.c - any text as the members of a request that carry pictures.
 *
 * The first byte chooses: even, the rest is an object with images, videos and media_kwargs; odd, it
 * is the text of one picture. What is read has as many references as the lists have elements, and
 * every reference loads or says why, naming its place. Base64 that decodes is spelled the same when
 * it is encoded again, but for its line breaks. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "media/source.h"
#include "request/pictures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_error(const clef_error *err) {
    assert(err->status != CLEF_OK && err->text[0] != '\0');
    assert(utf8_check(err->text, strlen(err->text)) == strlen(err->text));
}

static void check_base64(str text) {
    buf storage = {0}, again = {0};
    str bytes = {0};
    clef_error err = {0};
    const media_ref ref = {.form = MEDIA_TEXT, .data = text};
    if (source_bytes(&bytes, &storage, &ref, SIZE_MAX, false, "images[0]", &err) == CLEF_OK) {
        base64_encode(&again, bytes.p, bytes.n);
        for (size_t at = text.n, i = again.n; i > 0; at--) {
            assert(at > 0);
            if (text.p[at - 1] == '\n' || text.p[at - 1] == '\r') continue;
            i--;
            assert(text.p[at - 1] == again.p[i]);
        }
    } else {
        check_error(&err);
    }
    buf_free(&storage);
    buf_free(&again);
}

static void check_load(const media_ref *ref, const media_kwargs *kwargs, arena *mem) {
    media_rules rules;
    if (media_rules_load(&rules, "/nowhere", mem, NULL) != CLEF_OK) abort();
    const media_options options = {
        .rules = &rules, .kwargs = kwargs, .max_pixels = 1 << 16, .max_source_pixels = 1 << 16};
    media_item item = {0};
    clef_error err = {0};
    if (media_load(&item, ref, &options, mem, &err) != CLEF_OK) {
        check_error(&err);
        assert(strncmp(err.text, ref->video ? "videos[" : "images[", 7) == 0);
        return;
    }
    assert(item.n_rows > 0 && item.rgb != NULL);
    assert(item.n_rows == item.grid.t * item.grid.h * item.grid.w / 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1) return 0;
    const str text = {(const char *)data + 1, n - 1};
    arena mem = {.max_bytes = 256u << 20};
    if (data[0] % 2 == 1) {
        check_base64(text);
        check_load(&(media_ref){.form = MEDIA_TEXT, .data = text}, NULL, &mem);
        arena_free(&mem);
        return 0;
    }
    const json *root = NULL;
    pictures p = {0};
    clef_error err = {0};
    if (json_parse(&root, text, "text", &(json_limits){.max_depth = 16}, &mem, NULL) == CLEF_OK &&
        root->kind == JSON_OBJECT) {
        if (pictures_read(&p, root, &mem, &err) == CLEF_OK) {
            const json *images = json_get(root, STR("images"));
            assert(p.n_images == (images == NULL ? 0 : images->n));
            for (uint32_t i = 0; i < p.n_images + p.n_videos && i < 4; i++)
                check_load(&p.refs[i], &p.kwargs, &mem);
        } else {
            check_error(&err);
        }
    }
    arena_free(&mem);
    return 0;
}
