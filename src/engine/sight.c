/* sight.c - pictures of one record: loaded on the asking thread, computed on the computing one.
 *
 * In: what the request and the options name.  Out: rows that stand in the sequence instead of the
 * pads' embeddings, and the positions of all rows.
 *
 * Pictures are computed one after the other, in steps, so that other requests' steps can come
 * between. Before a picture begins, the store is asked for rows of equal pixels; whoever computed
 * one adds it. Everything but those rows and the tower at work lives in the job's arena. */
#include "engine/sight.h"

#include <string.h>

#include "base/memory.h"
#include "model/vision.h"

struct sight {
    const media_rules *rules;
    const media_item *items;   /* [n_items]: pictures, then videos */
    const prompt_media *media; /* [n_items] */
    uint32_t n_items;
    str digests;
    const prompt_picture *pictures; /* [n_pictures] */
    uint32_t n_pictures, n_tokens;
    const position *positions; /* [n_tokens] */
    const float **laid;        /* [n_tokens] */
    row_store *store;
    stored_rows **rows; /* [n_items]; NULL: not there yet, or given back */
    uint32_t n_seen;    /* items whose rows were there */
    vision *tower;      /* at work on item n_seen, or NULL */
    const float *blind; /* sight_blind */
};

/* ---- loading ---- */

/* Files of one kind behind the references of the request. */
static media_ref *add_files(media_ref *to, const char *const *paths, size_t n, bool video,
                            uint32_t first) {
    for (size_t i = 0; i < n; i++)
        *to++ = (media_ref){.form = MEDIA_PATH,
                            .video = video,
                            .index = first + (uint32_t)i,
                            .data = str_of(paths[i])};
    return to;
}

/* All references in the prompt's order: pictures of the request and from files, then videos. */
static clef_status list_refs(const media_ref **out, uint32_t *n, const pictures *p,
                             const sight_options *o, arena *mem, clef_error *err) {
    const size_t total = o->n_images + o->n_videos + p->n_images + p->n_videos;
    if (total > UINT16_MAX)
        return clef_fail(err, CLEF_ERR_LIMIT, "images, videos: %zu of them, the limit is %d", total,
                         UINT16_MAX);
    media_ref *refs = arena_alloc(mem, total, sizeof *refs);
    if (refs == NULL) return clef_fail_memory(err);
    media_ref *to = refs;
    for (uint32_t i = 0; i < p->n_images; i++) *to++ = p->refs[i];
    to = add_files(to, o->images, o->n_images, false, p->n_images);
    for (uint32_t i = 0; i < p->n_videos; i++) *to++ = p->refs[p->n_images + i];
    add_files(to, o->videos, o->n_videos, true, p->n_videos);
    *out = refs;
    *n = (uint32_t)total;
    return CLEF_OK;
}

static clef_status join_digests(str *out, const media_item *items, uint32_t n, arena *mem,
                                clef_error *err) {
    const size_t length = DIGEST_HEX - 1;
    char *all = arena_alloc(mem, n, length);
    if (all == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) memcpy(all + i * length, items[i].digest, length);
    *out = (str){all, n * length};
    return CLEF_OK;
}

clef_status sight_load(sight **out, const request *rq, const sight_options *o, uint32_t max_rows,
                       arena *mem, clef_error *err) {
    const media_ref *refs = NULL;
    uint32_t n = 0;
    TRY(list_refs(&refs, &n, &rq->media, o, mem, err));
    *out = NULL;
    if (n == 0) return CLEF_OK;
    sight *s = arena_alloc(mem, 1, sizeof *s);
    media_item *items = arena_alloc(mem, n, sizeof *items);
    prompt_media *media = arena_alloc(mem, n, sizeof *media);
    const size_t pointer = sizeof(stored_rows *); /* NOLINT(bugprone-sizeof-expression) */
    stored_rows **rows = arena_alloc(mem, n, pointer);
    if (s == NULL || items == NULL || media == NULL || rows == NULL) return clef_fail_memory(err);
    media_options options = o->media;
    options.kwargs = &rq->media.kwargs;
    options.max_rows = max_rows;
    options.pixels_before = o->n_pixels == NULL ? 0 : *o->n_pixels;
    for (uint32_t i = 0; i < n; i++) {
        /* Files come from the caller, who may read them; the request's own references may not. */
        options.allow_paths = o->media.allow_paths || refs[i].form == MEDIA_PATH;
        TRY(media_load(&items[i], &refs[i], &options, mem, err));
        options.rows_before += items[i].n_rows;
        options.pixels_before += items[i].n_pixels;
        media[i] = (prompt_media){.n_groups = items[i].grid.t,
                                  .n_rows = items[i].n_rows / items[i].grid.t,
                                  .seconds = items[i].seconds};
    }
    if (o->n_pixels != NULL) *o->n_pixels = options.pixels_before;
    memory_give_back(); /* what decoding took: the tower comes on top of what the heap keeps */
    str digests;
    TRY(join_digests(&digests, items, n, mem, err));
    *s = (sight){.rules = o->media.rules,
                 .digests = digests,
                 .items = items,
                 .media = media,
                 .n_items = n,
                 .store = o->store,
                 .rows = rows};
    *out = s;
    return CLEF_OK;
}

const prompt_media *sight_media(const sight *s, uint32_t *n) {
    *n = s->n_items;
    return s->media;
}

str sight_digests(const sight *s) {
    return s->digests;
}

clef_status sight_place(sight *s, const prompt *p, arena *mem, clef_error *err) {
    position_picture *places = arena_alloc(mem, p->n_pictures, sizeof *places);
    position *positions = arena_alloc(mem, p->n_ids, sizeof *positions);
    s->laid = arena_alloc(mem, p->n_ids, sizeof *s->laid);
    if (places == NULL || positions == NULL || s->laid == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < p->n_pictures; i++) {
        const media_grid g = s->items[p->pictures[i].item].grid;
        places[i] =
            (position_picture){p->pictures[i].begin, g.h / VISION_MERGE, g.w / VISION_MERGE};
    }
    position_planes(positions, p->n_ids, places, p->n_pictures);
    s->positions = positions;
    s->pictures = p->pictures;
    s->n_pictures = p->n_pictures;
    s->n_tokens = p->n_ids;
    return CLEF_OK;
}

const position *sight_positions(const sight *s) {
    return s->positions;
}

const float *const *sight_laid(const sight *s) {
    return s->laid;
}

/* ---- computing ---- */

bool sight_waits(const sight *s) {
    return s->n_seen < s->n_items;
}

bool sight_works(const sight *s) {
    return s->tower != NULL;
}

void sight_skip(sight *s) {
    s->n_seen = s->n_items;
}

/* Lays the rows of item n_seen where its groups stand, and goes on to the next. */
static void lay(sight *s, const model *m) {
    const float *rows = stored_floats(s->rows[s->n_seen]);
    for (uint32_t i = 0; i < s->n_pictures; i++) {
        const prompt_picture *p = &s->pictures[i];
        if (p->item != s->n_seen) continue;
        for (uint32_t r = 0; r < p->n_rows; r++)
            s->laid[p->begin + r] =
                s->blind != NULL ? s->blind
                                 : rows + ((size_t)p->group * p->n_rows + r) * m->cfg->hidden;
    }
    s->n_seen++;
}

static void give_patches(void *context, float *out, uint32_t first, uint32_t n) {
    const sight *s = context;
    patch_rows(out, &s->items[s->n_seen], s->rules, first, n);
}

static clef_status begin_tower(sight *s, const model *m, uint32_t max_rows, clef_error *err) {
    const media_item *item = &s->items[s->n_seen];
    const vision_input in = {.grid = item->grid, .patches = give_patches, .patches_context = s};
    stored_rows *rows = row_store_new((size_t)item->n_rows * m->cfg->hidden);
    if (rows == NULL) return clef_fail_memory(err);
    s->rows[s->n_seen] = rows;
    return vision_open(&s->tower, m, stored_floats(rows), &in, max_rows < 4 ? 4 : max_rows, err);
}

clef_status sight_step(sight *s, const model *m, uint32_t max_rows, clef_error *err) {
    const media_item *item = &s->items[s->n_seen];
    if (s->tower == NULL) {
        s->rows[s->n_seen] = row_store_find(s->store, item->digest);
        if (s->rows[s->n_seen] != NULL)
            lay(s, m);
        else
            TRY(begin_tower(s, m, max_rows, err));
        return CLEF_OK;
    }
    if (vision_step(s->tower)) return CLEF_OK;
    vision_close(s->tower);
    s->tower = NULL;
    row_store_add(s->store, s->rows[s->n_seen], item->digest);
    lay(s, m);
    return CLEF_OK;
}

size_t sight_total(const sight *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_items; i++) n += s->items[i].n_rows;
    return n;
}

size_t sight_done(const sight *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_seen; i++) n += s->items[i].n_rows;
    if (s->tower != NULL)
        n += (size_t)(vision_share(s->tower) * (double)s->items[s->n_seen].n_rows);
    return n;
}

void sight_blind(sight *s, const float *row) {
    s->blind = row;
}

void sight_let_go(sight *s) {
    vision_close(s->tower);
    s->tower = NULL;
    s->n_seen = 0;
    for (uint32_t i = 0; i < s->n_items; i++) {
        row_store_release(s->store, s->rows[i]);
        s->rows[i] = NULL;
    }
}

/* ---- looking ---- */

sight_sizes sight_bytes(const sight *s, const config *cfg, uint32_t max_rows) {
    sight_sizes sum = {0};
    for (uint32_t i = 0; i < s->n_items; i++) {
        const size_t tower = vision_bytes(cfg, s->items[i].grid, max_rows < 4 ? 4 : max_rows);
        if (tower > sum.tower) sum.tower = tower;
        sum.rows += (size_t)s->items[i].n_rows * cfg->hidden * sizeof(float);
    }
    return sum;
}

void sight_write(buf *out, const sight *s) {
    buf_add_text(out, ", \"media\": [");
    for (uint32_t i = 0; i < s->n_items; i++) {
        const media_item *item = &s->items[i];
        buf_printf(out, "%s{\"kind\": \"%s\", \"grid\": [%u, %u, %u], \"tokens\": %u, \"begin\": [",
                   i > 0 ? ", " : "", item->video ? "video" : "image", item->grid.t, item->grid.h,
                   item->grid.w, item->n_rows);
        bool first = true;
        for (uint32_t k = 0; k < s->n_pictures; k++) {
            if (s->pictures[k].item != i) continue;
            buf_printf(out, first ? "%u" : ", %u", s->pictures[k].begin);
            first = false;
        }
        buf_add_text(out, "]}");
    }
    buf_add_text(out, "], \"positions\": [");
    for (uint32_t axis = 0; axis < 3; axis++) {
        buf_add_text(out, axis > 0 ? ", [" : "[");
        for (uint32_t i = 0; i < s->n_tokens; i++)
            buf_printf(out, i > 0 ? ", %u" : "%u", s->positions[i].axis[axis]);
        buf_add_char(out, ']');
    }
    buf_add_char(out, ']');
}
