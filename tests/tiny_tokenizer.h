/* tiny_tokenizer.h - a whole tokenizer.json that fits on a screen: the 256 single bytes, whose ids
 * are their values, and a few entries above them. */
#ifndef TESTS_TINY_TOKENIZER_H
#define TESTS_TINY_TOKENIZER_H

#include "base/buf.h"
#include "base/utf8.h"

/* Appends `"spelling":value,` for every byte, in the byte alphabet. */
static inline void tiny_add_bytes(buf *out) {
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; byte++) {
        const bool as_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
                               (byte >= 174 && byte <= 255);
        char spelled[4];
        const size_t n = utf8_encode(spelled, as_itself ? byte : next++);
        buf_add_char(out, '"');
        if (byte == '"' || byte == '\\') buf_add_char(out, '\\');
        buf_add(out, spelled, n);
        buf_printf(out, "\":%u,", byte);
    }
}

/* Entries beyond the bytes: "lo" is one that no merge produces, "ab" and "bc" compete for "abc". */
#define TINY_VOCAB                                                                       \
    "\"he\":256,\"ll\":257,\"hell\":258,\"hello\":259,\"lo\":260,\"ab\":261,\"bc\":262," \
    "\"aa\":263,\"aaaa\":264,\"\xC4\xA0h\":265"
#define TINY_MERGES                                                                             \
    "[\"h\",\"e\"],[\"l\",\"l\"],[\"he\",\"ll\"],[\"hell\",\"o\"],[\"b\",\"c\"],[\"a\",\"b\"]," \
    "[\"a\",\"a\"],[\"aa\",\"aa\"],[\"\xC4\xA0\",\"h\"]"
enum { TINY_ENTRIES = 266, TINY_N_MERGES = 9, TINY_UNREACHABLE = 1 };

/* Added tokens: of the last three the first begins the second, and the third starts otherwise. */
enum { TINY_END = 266, TINY_THINK, TINY_THINKING, TINY_AT, TINY_ADDED = 4 };
#define TINY_TOKEN(id, content)                                     \
    "{\"id\":" #id ",\"content\":\"" content "\",\"special\":true," \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"      \
    "\"normalized\":false}"
#define TINY_TOKENS                                                                     \
    TINY_TOKEN(266, "<|end|>")                                                          \
    "," TINY_TOKEN(267, "<think") "," TINY_TOKEN(268, "<thinking>") "," TINY_TOKEN(269, \
                                                                                   "@e\xCC\x81")

#define TINY_QWEN2                                                           \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+"   \
    "|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+" \
    "|\\\\s+(?!\\\\S)|\\\\s+"

/* Appends the document. */
static inline void tiny_document(buf *out) {
    buf_add_text(out,
                 "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
                 "\"added_tokens\":[" TINY_TOKENS "],\"normalizer\":{\"type\":\"NFC\"},"
                 "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                 "\"pattern\":{\"Regex\":\"" TINY_QWEN2 "\"},\"behavior\":\"Isolated\","
                 "\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                 "\"trim_offsets\":true,\"use_regex\":false}]},\"post_processor\":null,"
                 "\"decoder\":null,\"model\":{\"type\":\"BPE\",\"dropout\":null,"
                 "\"unk_token\":null,\"continuing_subword_prefix\":\"\","
                 "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,"
                 "\"ignore_merges\":false,\"vocab\":{");
    tiny_add_bytes(out);
    buf_add_text(out, TINY_VOCAB "},\"merges\":[" TINY_MERGES "]}}");
}

#endif
