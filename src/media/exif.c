/* exif.c - finds the orientation in a TIFF structure: a byte order, the place of the first
 * directory, and in it entries of 12 bytes (tag, type, count, value). Only that directory is looked
 * at, where Pillow's exif_transpose looks too. */
#include "media/exif.h"

#include "media/image_codec.h"

enum { HEADER = 8, ENTRY = 12, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, LAST_ORIENTATION = 8 };

unsigned exif_orientation(str tiff) {
    const unsigned char *p = (const unsigned char *)tiff.p;
    if (tiff.n < HEADER) return 1;
    const bool little = memcmp(p, "II*\0", 4) == 0;
    if (!little && memcmp(p, "MM\0*", 4) != 0) return 1;
    const size_t directory = little ? le32(p + 4) : be32(p + 4);
    if (directory > tiff.n - 2) return 1;
    const uint32_t n = little ? le16(p + directory) : be16(p + directory);
    const unsigned char *entry = p + directory + 2;
    for (uint32_t i = 0; i < n && (size_t)(p + tiff.n - entry) >= ENTRY; i++, entry += ENTRY) {
        const uint32_t tag = little ? le16(entry) : be16(entry);
        const uint32_t type = little ? le16(entry + 2) : be16(entry + 2);
        if (tag != TAG_ORIENTATION) continue;
        const uint32_t value = little ? le16(entry + 8) : be16(entry + 8);
        return type == TYPE_SHORT && value >= 1 && value <= LAST_ORIENTATION ? value : 1;
    }
    return 1;
}
