/* split.h - cuts text into the pieces that BPE merges inside. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include "base/str.h"
#include "text/tokenizer.h"

/* The pattern whose regular expression is exactly `regex`; false when it is none of the two. */
bool split_recognise(split_pattern *out, str regex);

/* "qwen2", "qwen35". */
const char *split_name(split_pattern pattern);

/* The end of the piece that begins at `at`, which is below text.n and 0 or the end of the piece
 * before. `text` is valid UTF-8, in NFC where the tokenizer normalises. */
size_t split_next(split_pattern pattern, str text, size_t at);

#endif
