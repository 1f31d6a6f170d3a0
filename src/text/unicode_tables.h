/* unicode_tables.h - the generated character data; only unicode.h and unicode.c look inside.
 *
 * Two-stage tables: block number by the high bits of the code point, then one byte by its low seven
 * bits. */
#ifndef TEXT_UNICODE_TABLES_H
#define TEXT_UNICODE_TABLES_H

#include <stdint.h>

extern const uint8_t unicode_class_index[], unicode_class_blocks[]; /* a char_class each */
extern const uint8_t unicode_nfc_index[], unicode_nfc_blocks[];     /* number of a record */

typedef struct {
    uint8_t combining; /* canonical combining class */
    uint8_t changes;   /* decomposes for good, or may compose with what stands before it */
} unicode_nfc_record;
extern const unicode_nfc_record unicode_nfc_records[]; /* record 0 is {0, 0} */

/* Code points with a canonical decomposition, rising (Hangul syllables are computed instead), and
 * their full decompositions: parts[start[i]] to parts[start[i + 1]]. */
extern const uint32_t unicode_n_decompositions;
extern const uint32_t unicode_decomposed[];
extern const uint16_t unicode_decomposition_start[];
extern const uint32_t unicode_decomposition_parts[];

typedef struct {
    uint32_t first, second, composite;
} unicode_composition;
extern const uint32_t unicode_n_compositions;
extern const unicode_composition unicode_compositions[]; /* by first, then second */

#endif
