/* split.c - the two split patterns of the Qwen family as one hand-written scanner.
 *
 * In: a stretch of text between added tokens.  Out: byte ranges that cover it exactly, in order.
 * The patterns differ in one point: whether marks (\p{M}) belong to words, like letters (qwen35),
 * or to runs of symbols (qwen2). The first alternative that matches wins:
 *
 *   1 (?i:'s|'t|'re|'ve|'m|'ll|'d)     an English ending; U+017F folds to s and counts as one
 *   2 [^\r\n\p{L}\p{N}]?word+          a word, with any one character before it but CR, LF, number
 *   3 \p{N}                            one digit: "2026" is four pieces
 *   4 " "?other+[\r\n]*                a run of symbols with the line ends behind it
 *   5 \s*[\r\n]+                       white space up to its last line end
 *   6 \s+(?!\S)                        all white space but the last character, or all at the end
 *   7 \s+                              what is left: one white space character
 *
 * The traps: rule 1 acts only where a piece begins ("''s" is "''", "s"); in rule 2 the character
 * before the word may be a tab, a quote or a symbol; rule 6 leaves the last space to the next word;
 * "end of text" is the end of the stretch. A run of white space that rule 5 cuts holds no further
 * line end, so each character is looked at a bounded number of times: any text takes linear time.
 */
#include "text/split.h"

#include "text/unicode.h"

static const char *const names[] = {[SPLIT_QWEN2] = "qwen2", [SPLIT_QWEN35] = "qwen35"};

bool split_recognise(split_pattern *out, str regex) {
    static const char *const patterns[] = {
        [SPLIT_QWEN2] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                        "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        [SPLIT_QWEN35] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                         "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    };
    for (split_pattern p = SPLIT_QWEN2; p <= SPLIT_QWEN35; p++) {
        if (str_equal(regex, str_of(patterns[p]))) {
            *out = p;
            return true;
        }
    }
    return false;
}

const char *split_name(split_pattern pattern) {
    return names[pattern];
}

/* Sets of classes are bit masks. */
enum {
    NEWLINES = 1 << CLASS_NEWLINE,
    SPACES = 1 << CLASS_SPACE | NEWLINES,
    NUMBERS = 1 << CLASS_NUMBER
};

static const struct {
    unsigned word, other;
} sets[] = {
    [SPLIT_QWEN2] = {1 << CLASS_LETTER, 1 << CLASS_OTHER | 1 << CLASS_MARK},
    [SPLIT_QWEN35] = {1 << CLASS_LETTER | 1 << CLASS_MARK, 1 << CLASS_OTHER},
};

/* The class of the character at `at` as a set of one; the empty set at the end of the text. */
static inline unsigned set_at(str text, size_t at, size_t *width) {
    if (at == text.n) {
        *width = 0;
        return 0;
    }
    return 1u << unicode_class(unicode_point(text.p + at, width));
}

/* Where the run of characters of `set` that begins at `at` ends. */
static inline size_t skip(str text, size_t at, unsigned set) {
    size_t width;
    while ((set_at(text, at, &width) & set) != 0) at += width;
    return at;
}

/* Bytes of the English ending at `at`, where an apostrophe stands; 0 when there is none. */
static size_t ending(str text, size_t at) {
    const unsigned char *p = (const unsigned char *)text.p + at;
    const size_t n = text.n - at;
    if (n < 2) return 0;
    const unsigned char first = p[1] | 0x20; /* lower case, of a letter */
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (n < 3) return 0;
    if (p[1] == 0xC5 && p[2] == 0xBF) return 3; /* U+017F, long s */
    const unsigned char second = p[2] | 0x20;
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    return first == 'l' && second == 'l' ? 3 : 0;
}

/* The end of the piece that begins with white space, rules 5 to 7. */
static size_t white_space(str text, size_t at) {
    size_t end = at, last = at, after_newline = at, width;
    for (unsigned set; (set = set_at(text, end, &width) & SPACES) != 0;) {
        last = end;
        end += width;
        if (set == NEWLINES) after_newline = end;
    }
    if (after_newline > at) return after_newline;
    if (end == text.n || last == at) return end;
    return last;
}

size_t split_next(split_pattern pattern, str text, size_t at) {
    const unsigned word = sets[pattern].word, other = sets[pattern].other;
    size_t width, next_width;
    const unsigned set = set_at(text, at, &width);
    if ((set & word) != 0) return skip(text, at + width, word);
    if ((set & NUMBERS) != 0) return at + width;
    if ((set & NEWLINES) != 0) return white_space(text, at);
    if (text.p[at] == '\'') {
        const size_t n = ending(text, at);
        if (n > 0) return at + n;
    }
    const size_t next = at + width;
    const unsigned next_set = set_at(text, next, &next_width);
    if ((next_set & word) != 0) return skip(text, next + next_width, word);
    if ((set & other) != 0 || (text.p[at] == ' ' && (next_set & other) != 0))
        return skip(text, skip(text, next, other), NEWLINES);
    return white_space(text, at);
}
