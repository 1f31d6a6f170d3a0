/* tokenizer_fuzz.c - any bytes as tokenizer.json.
 *
 * Few mutations of a tokenizer.json stay one, so when bit 0 of the first byte is set the rest fills
 * the places of a tiny good one instead: texts separated by bytes FF for more added tokens, more
 * vocabulary, more merges. Bit 1 takes the tiny one's added tokens out: their ids follow the
 * vocabulary, so they would not fit behind a longer one. The property: what loads has facts that
 * fit together, and encodes a text to ids up to the largest, in plain mode to base ids alone; what
 * does not load says why. */
#include <assert.h>
#include <stdlib.h>

#include "tests/tiny_tokenizer.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The text up to the next byte FF, taken off the front of *rest; empty when nothing is left. */
static str next_text(str *rest) {
    size_t n = 0;
    while (n < rest->n && (unsigned char)rest->p[n] != 0xFF) n++;
    const str text = {rest->p, n};
    const size_t used = n < rest->n ? n + 1 : n;
    *rest = (str){rest->p + used, rest->n - used};
    return text;
}

/* The tiny document with text put behind its added tokens, its vocabulary and its merges. */
static void fill_document(buf *out, bool keep_added, str texts) {
    static const char *const ends[] = {"],\"normalizer\"", "},\"merges\"", "]}}"};
    buf text = {0};
    tiny_document(&text);
    const char *from = text.p;
    if (!keep_added) {
        const char *added = strstr(from, TINY_TOKENS);
        buf_add(out, from, (size_t)(added - from));
        from = added + strlen(TINY_TOKENS);
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *end = strstr(from, ends[i]);
        buf_add(out, from, (size_t)(end - from));
        buf_add_str(out, next_text(&texts));
        from = end;
    }
    buf_add_text(out, from);
    buf_free(&text);
}

static void check_ids(const tokenizer *t, clef_control control, str text, uint32_t largest) {
    id_list ids = {0};
    const clef_status s = tokenizer_encode(t, text, control, &ids, NULL);
    assert(s == CLEF_OK);
    assert((ids.n == 0) == (text.n == 0));
    for (size_t i = 0; i < ids.n; i++) assert(ids.ids[i] >= 0 && (uint32_t)ids.ids[i] <= largest);
    id_list_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    const str input = {(const char *)data + 1, n - 1};
    buf text = {0};
    if (data[0] & 1)
        fill_document(&text, (data[0] & 2) == 0, input);
    else
        buf_add_str(&text, input);
    tokenizer *t = NULL;
    clef_error err = {0};
    if (tokenizer_parse(&t, (str){text.p, text.n}, "f", NULL, &err) == CLEF_OK) {
        const tokenizer_facts f = tokenizer_describe(t);
        assert(f.max_id + 1 == f.n_vocab + f.n_added && f.n_unreachable <= f.n_vocab - 256);
        const size_t valid = utf8_check(text.p, text.n);
        check_ids(t, CLEF_CONTROL_REFERENCE, (str){text.p, valid}, f.max_id);
        check_ids(t, CLEF_CONTROL_PLAIN, (str){text.p, valid}, f.n_vocab - 1);
        tokenizer_free(t);
    } else {
        assert(t == NULL && err.text[0] == 'f' && err.text[1] == ':');
    }
    buf_free(&text);
    return 0;
}
