/* unicode.c - NFC: canonical decomposition, canonical order, canonical composition.
 *
 * In: valid UTF-8.  Out: its NFC form, as the reference tokenizer's normaliser gives it. That one
 * is frozen at Unicode 9.0: marks added later keep their place and compose with nothing.
 *
 * Nearly all text is in NFC already, so the text is scanned with the standard's quick check
 * (UAX #15, section 9). Only around a character that may change is a segment taken apart: from the
 * last boundary before it to the next one after it. A boundary is a character of combining class 0
 * that neither changes nor composes with what stands before it; nothing before it can reach past it
 * (make_tables.py asserts the same of its decomposition).
 *
 * The traps: a megabyte of combining marks is one segment, so the ordering of a long run counts
 * instead of inserting; Hangul is arithmetic, in no table; a character blocked by another of the
 * same or a higher class does not compose. */
#include "text/unicode.h"

#include <stdlib.h>

#include "base/utf8.h"

enum {
    HANGUL_SYLLABLE = 0xAC00,
    HANGUL_LEAD = 0x1100,
    HANGUL_VOWEL = 0x1161,
    HANGUL_TAIL = 0x11A7, /* one before the first: tail 0 is none */
    N_LEADS = 19,
    N_VOWELS = 21,
    N_TAILS = 28,
    N_SYLLABLES = N_LEADS * N_VOWELS * N_TAILS,
    FIRST_AFFECTED_BYTE = 0xCC, /* no character below U+0300 changes or combines */
    SHORT_RUN = 24,             /* marks up to this many are sorted by insertion */
    N_CLASSES = 256             /* of combining */
};

static const unicode_nfc_record *nfc_record(uint32_t point) {
    const uint32_t block = unicode_nfc_index[point >> 7];
    return &unicode_nfc_records[unicode_nfc_blocks[block << 7 | (point & 127)]];
}

static bool is_boundary(const unicode_nfc_record *r) {
    return r->combining == 0 && r->changes == 0;
}

/* Walks from `at`. Returns the offset of the first character that may not stand as it does in NFC,
 * or the length; *boundary is the last boundary before that, at first `at`. */
static size_t quick_check(str text, size_t at, size_t *boundary) {
    *boundary = at;
    unsigned last = 0; /* combining class of the previous character */
    while (at < text.n) {
        uint64_t eight;
        if (text.n - at >= sizeof eight) {
            memcpy(&eight, text.p + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                *boundary = at - 1;
                last = 0;
                continue;
            }
        }
        const unsigned char lead = (unsigned char)text.p[at];
        if (lead < FIRST_AFFECTED_BYTE) {
            *boundary = at;
            last = 0;
            at += lead < 0x80 ? 1 : 2;
            continue;
        }
        size_t width;
        const unicode_nfc_record *r = nfc_record(unicode_point(text.p + at, &width));
        if (is_boundary(r)) {
            *boundary = at;
        } else if (r->changes != 0 || (r->combining != 0 && r->combining < last)) {
            return at;
        }
        last = r->combining;
        at += width;
    }
    return at;
}

bool unicode_is_nfc(str text) {
    size_t boundary;
    return quick_check(text, 0, &boundary) == text.n;
}

/* The code points of a segment, each with its combining class in the top byte. */
typedef struct {
    uint32_t *p;
    size_t n, cap;
} segment;

static uint32_t point_of(uint32_t item) {
    return item & 0x1FFFFF;
}

static uint32_t combining_of(uint32_t item) {
    return item >> 24;
}

static bool segment_add(segment *s, uint32_t point) {
    if (s->n == s->cap) {
        const size_t cap = s->cap == 0 ? 64 : s->cap * 2;
        size_t bytes;
        if (!size_mul(&bytes, cap, sizeof *s->p)) return false;
        uint32_t *p = realloc(s->p, bytes);
        if (p == NULL) return false;
        s->p = p;
        s->cap = cap;
    }
    s->p[s->n++] = (uint32_t)nfc_record(point)->combining << 24 | point;
    return true;
}

static bool add_hangul(segment *s, uint32_t syllable) {
    const uint32_t tail = syllable % N_TAILS;
    return segment_add(s, HANGUL_LEAD + syllable / (N_VOWELS * N_TAILS)) &&
           segment_add(s, HANGUL_VOWEL + syllable / N_TAILS % N_VOWELS) &&
           (tail == 0 || segment_add(s, HANGUL_TAIL + tail));
}

static bool add_decomposed(segment *s, uint32_t point) {
    if (point >= HANGUL_SYLLABLE && point < HANGUL_SYLLABLE + N_SYLLABLES)
        return add_hangul(s, point - HANGUL_SYLLABLE);
    uint32_t low = 0, high = unicode_n_decompositions;
    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        if (unicode_decomposed[mid] < point)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == unicode_n_decompositions || unicode_decomposed[low] != point)
        return segment_add(s, point);
    for (uint32_t i = unicode_decomposition_start[low]; i < unicode_decomposition_start[low + 1];
         i++) {
        if (!segment_add(s, unicode_decomposition_parts[i])) return false;
    }
    return true;
}

/* Sorts a run of marks by combining class; equal classes keep their order. */
static bool sort_run(uint32_t *run, size_t n) {
    if (n <= SHORT_RUN) {
        for (size_t i = 1; i < n; i++) {
            const uint32_t item = run[i];
            size_t at = i;
            for (; at > 0 && combining_of(run[at - 1]) > combining_of(item); at--)
                run[at] = run[at - 1];
            run[at] = item;
        }
        return true;
    }
    size_t start[N_CLASSES + 1] = {0};
    for (size_t i = 0; i < n; i++) start[combining_of(run[i]) + 1]++;
    for (size_t c = 0; c < N_CLASSES; c++) start[c + 1] += start[c];
    uint32_t *sorted = malloc(n * sizeof *sorted);
    if (sorted == NULL) return false;
    for (size_t i = 0; i < n; i++) sorted[start[combining_of(run[i])]++] = run[i];
    memcpy(run, sorted, n * sizeof *run);
    free(sorted);
    return true;
}

static bool sort_marks(segment *s) {
    for (size_t at = 0; at < s->n;) {
        size_t end = at;
        while (end < s->n && combining_of(s->p[end]) != 0) end++;
        if (!sort_run(s->p + at, end - at)) return false;
        at = end + 1;
    }
    return true;
}

/* The composite of two code points, or 0. */
static uint32_t composite_of(uint32_t first, uint32_t second) {
    if (first >= HANGUL_LEAD && first < HANGUL_LEAD + N_LEADS && second >= HANGUL_VOWEL &&
        second < HANGUL_VOWEL + N_VOWELS)
        return HANGUL_SYLLABLE +
               ((first - HANGUL_LEAD) * N_VOWELS + (second - HANGUL_VOWEL)) * N_TAILS;
    if (first >= HANGUL_SYLLABLE && first < HANGUL_SYLLABLE + N_SYLLABLES &&
        (first - HANGUL_SYLLABLE) % N_TAILS == 0 && second > HANGUL_TAIL &&
        second < HANGUL_TAIL + N_TAILS)
        return first + (second - HANGUL_TAIL);
    uint32_t low = 0, high = unicode_n_compositions;
    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        const unicode_composition *c = &unicode_compositions[mid];
        if (c->first < first || (c->first == first && c->second < second))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == unicode_n_compositions) return 0;
    const unicode_composition *c = &unicode_compositions[low];
    return c->first == first && c->second == second ? c->composite : 0;
}

static void compose(segment *s) {
    size_t n = 0;
    bool has_starter = false;
    size_t starter = 0;
    for (size_t i = 0; i < s->n; i++) {
        const uint32_t item = s->p[i];
        /* Between starter and item stand only marks; the last of them has the highest class. */
        const bool reaches =
            has_starter && (n == starter + 1 || combining_of(s->p[n - 1]) < combining_of(item));
        const uint32_t composite =
            reaches ? composite_of(point_of(s->p[starter]), point_of(item)) : 0;
        if (composite != 0) {
            s->p[starter] = composite; /* composites have class 0 */
            continue;
        }
        if (combining_of(item) == 0) {
            has_starter = true;
            starter = n;
        }
        s->p[n++] = item;
    }
    s->n = n;
}

/* Decomposes from `at` up to the first boundary at or after `least`; returns where that is. */
static bool decompose(segment *s, str text, size_t at, size_t least, size_t *end) {
    while (at < text.n) {
        size_t width;
        const uint32_t point = unicode_point(text.p + at, &width);
        if (at >= least && is_boundary(nfc_record(point))) break;
        if (!add_decomposed(s, point)) return false;
        at += width;
    }
    *end = at;
    return true;
}

clef_status unicode_nfc(buf *out, str text, clef_error *err) {
    segment s = {0};
    bool enough_memory = true;
    size_t at = 0;
    while (at < text.n) {
        size_t boundary;
        const size_t found = quick_check(text, at, &boundary);
        if (found == text.n) boundary = text.n;
        buf_add(out, text.p + at, boundary - at);
        at = boundary;
        if (at == text.n) break;
        s.n = 0;
        enough_memory = decompose(&s, text, boundary, found, &at) && sort_marks(&s);
        if (!enough_memory) break;
        compose(&s);
        for (size_t i = 0; i < s.n; i++) {
            char utf8[4];
            buf_add(out, utf8, utf8_encode(utf8, point_of(s.p[i])));
        }
    }
    free(s.p);
    return enough_memory ? buf_status(out, err) : clef_fail_memory(err);
}
