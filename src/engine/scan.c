/* scan.c - looks at every stored number of a model for NaN and infinity, which the file format
 * allows and no trained weight is.
 *
 * Tensors are cut into pieces that threads take in any order; a tensor's count and its first place
 * do not depend on that order. Types whose values are always finite have nothing to look for, and
 * those of 8 bits and fewer with a NaN are none that clef_open takes. */
#include <pthread.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/pool.h"
#include "checkpoint/hub.h"
#include "checkpoint/safetensors.h"
#include "engine/engine.h"

enum { PIECE_BYTES = 4 << 20 };
static const double tell_s = 0.05; /* how often progress is told */

/* A tensor and what was found in it. */
typedef struct {
    safetensors_entry entry;
    size_t first_piece; /* of all pieces */
    uint64_t n_bad, first_bad;
} subject;

typedef struct {
    subject *subjects; /* [n], by their first pieces */
    size_t n, n_pieces, total;
    const clef_scan_options *o;
    pthread_mutex_t lock; /* guards what was found, the rest, and calls of progress */
    size_t done;
    double told;
    bool stop;
} scan;

/* The bits that are all set in NaN and infinity alone, and the bytes of a value; 0 where every
 * value is finite. */
static uint64_t exponent_of(dtype type, size_t *bytes) {
    switch (type) {
    case DTYPE_BF16:
        *bytes = 2;
        return 0x7f80;
    case DTYPE_F16:
        *bytes = 2;
        return 0x7c00;
    case DTYPE_F32:
    case DTYPE_C64:
        *bytes = 4;
        return 0x7f800000;
    case DTYPE_F64:
        *bytes = 8;
        return (uint64_t)0x7ff << 52;
    default:
        return 0;
    }
}

/* Values may lie at any address; little-endian, as the processor is. */
static uint64_t value_at(const unsigned char *p, size_t i, size_t bytes) {
    uint16_t half;
    uint32_t word;
    uint64_t both;
    if (bytes == 2) {
        memcpy(&half, p + 2 * i, sizeof half);
        return half;
    }
    if (bytes == 4) {
        memcpy(&word, p + 4 * i, sizeof word);
        return word;
    }
    memcpy(&both, p + 8 * i, sizeof both);
    return both;
}

/* How many of n values have all bits of the exponent set. */
static size_t count_bad(const unsigned char *p, size_t n, size_t bytes, uint64_t exponent) {
    size_t bad = 0;
    if (bytes == 2) /* the usual case, without a branch in the loop */
        for (size_t i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, p + 2 * i, sizeof half);
            bad += (half & exponent) == exponent;
        }
    else
        for (size_t i = 0; i < n; i++) bad += (value_at(p, i, bytes) & exponent) == exponent;
    return bad;
}

/* The last subject whose pieces begin at or before `piece`. */
static subject *subject_of(const scan *s, size_t piece) {
    size_t low = 0, high = s->n;
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (s->subjects[mid].first_piece <= piece)
            low = mid;
        else
            high = mid;
    }
    return &s->subjects[low];
}

static void scan_piece(void *context, size_t item, unsigned worker) {
    (void)worker;
    scan *s = context;
    subject *of = subject_of(s, item);
    const tensor *t = of->entry.tensor;
    const size_t begin = (item - of->first_piece) * PIECE_BYTES, left = t->bytes - begin;
    const size_t n_bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
    size_t bytes = 1, bad = 0, first = 0;
    const uint64_t exponent = exponent_of(t->type, &bytes);
    const unsigned char *p = (const unsigned char *)t->data + begin;
    pthread_mutex_lock(&s->lock);
    const bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    if (stop) return;
    if (exponent != 0) bad = count_bad(p, n_bytes / bytes, bytes, exponent);
    if (bad > 0)
        while ((value_at(p, first, bytes) & exponent) != exponent) first++;
    pthread_mutex_lock(&s->lock);
    if (bad > 0) {
        const uint64_t at = begin / bytes + first;
        if (of->n_bad == 0 || at < of->first_bad) of->first_bad = at;
        of->n_bad += bad;
    }
    s->done += n_bytes;
    const double now = cpu_seconds();
    if (!s->stop && s->o->progress != NULL && now - s->told >= tell_s) {
        s->told = now;
        s->stop = s->o->progress(s->o->user, s->done, s->total) != 0;
    }
    pthread_mutex_unlock(&s->lock);
}

static void tell(const clef_scan_options *o, int *sound, const char *sentence) {
    *sound = 0;
    if (o->finding != NULL) o->finding(o->user, sentence);
}

static clef_status tell_bad(const clef_scan_options *o, int *sound, const subject *of,
                            clef_error *err) {
    const tensor *t = of->entry.tensor;
    size_t bytes = 1;
    const uint64_t exponent = exponent_of(t->type, &bytes);
    const uint64_t bits = value_at(t->data, of->first_bad, bytes);
    buf place = {0};
    uint64_t at = t->type == DTYPE_C64 ? of->first_bad / 2 : of->first_bad, stride = 1;
    for (uint32_t i = 1; i < t->rank; i++) stride *= t->shape[i];
    for (uint32_t i = 0; i < t->rank; i++) {
        buf_printf(&place, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)(at / stride));
        at %= stride;
        if (i + 1 < t->rank) stride /= t->shape[i + 1];
    }
    TRY(buf_status(&place, err));
    clef_error what = {0};
    const uint64_t fraction = bits & (((exponent & -exponent) - 1));
    clef_fail(&what, CLEF_ERR_FORMAT,
              "%s: tensor '%.*s' has %llu number%s that %s not finite, the first at [%s]: %s",
              of->entry.file, STR_ARG(of->entry.name), (unsigned long long)of->n_bad,
              of->n_bad == 1 ? "" : "s", of->n_bad == 1 ? "is" : "are", t->rank == 0 ? "" : place.p,
              fraction != 0 ? "NaN" : "infinity");
    buf_free(&place);
    tell(o, sound, what.text);
    return CLEF_OK;
}

/* Adds the tensors of one set of files. */
static void add_subjects(scan *s, const safetensors *st) {
    for (uint32_t i = 0; st != NULL && i < safetensors_count(st); i++) {
        const safetensors_entry e = safetensors_at(st, i);
        if (e.tensor->bytes == 0) continue;
        s->subjects[s->n++] = (subject){.entry = e, .first_piece = s->n_pieces};
        s->n_pieces += (e.tensor->bytes - 1) / PIECE_BYTES + 1;
        s->total += e.tensor->bytes;
    }
}

static clef_status scan_all(const safetensors *backbone, const safetensors *head,
                            const clef_scan_options *o, int *sound, clef_error *err) {
    const size_t most = (backbone == NULL ? 0 : safetensors_count(backbone)) +
                        (head == NULL ? 0 : safetensors_count(head));
    if (most == 0) return CLEF_OK;
    scan s = {.o = o, .subjects = calloc(most, sizeof *s.subjects)};
    if (s.subjects == NULL) return clef_fail_memory(err);
    add_subjects(&s, backbone);
    add_subjects(&s, head);
    pool *workers = NULL;
    clef_status status = pool_open(&workers, o->jobs == 0 ? cpu_count() : o->jobs, err);
    if (status == CLEF_OK && pthread_mutex_init(&s.lock, NULL) == 0) {
        pool_run(workers, s.n_pieces, scan_piece, &s);
        pthread_mutex_destroy(&s.lock);
        if (s.stop) status = clef_fail(err, CLEF_ERR_CANCELLED, "stopped before all was read");
    } else if (status == CLEF_OK) {
        status = clef_fail_memory(err);
    }
    pool_close(workers);
    for (size_t i = 0; status == CLEF_OK && i < s.n; i++)
        if (s.subjects[i].n_bad > 0) status = tell_bad(o, sound, &s.subjects[i], err);
    free(s.subjects);
    return status;
}

clef_status clef_scan(const clef_options *options, const clef_scan_options *scan_options,
                      int *sound, clef_error *err) {
    static const clef_scan_options defaults = {0};
    const clef_scan_options *o = scan_options == NULL ? &defaults : scan_options;
    TRY(engine_check_options(options, true, err));
    char *dir = NULL, *head_path = NULL;
    safetensors *backbone = NULL, *head = NULL;
    clef_engine *engine = NULL;
    clef_error problem = {0};
    TRY(hub_resolve(&dir, options->model, options->hub_cache, err));
    *sound = 1;
    clef_status s = clef_open(&engine, options, &problem);
    clef_close(engine);
    if (s == CLEF_ERR_MEMORY || s == CLEF_ERR_INTERNAL || s == CLEF_ERR_INPUT) {
        free(dir);
        return clef_fail(err, s, "%s", problem.text);
    }
    if (s != CLEF_OK) tell(o, sound, problem.text);
    /* What does not open was told above; the rest is looked at all the same. */
    s = safetensors_open_model(&backbone, dir, &problem);
    if (s != CLEF_ERR_MEMORY) s = hub_file(&head_path, dir, "joint_head.safetensors", &problem);
    if (s == CLEF_OK) s = safetensors_open(&head, head_path, &problem);
    if (s == CLEF_ERR_MEMORY)
        clef_fail_memory(err);
    else
        s = scan_all(backbone, head, o, sound, err);
    safetensors_close(backbone);
    safetensors_close(head);
    free(head_path);
    free(dir);
    return s;
}
