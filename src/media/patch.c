/* patch.c - pixels to the rows that the patch embedding multiplies.
 *
 * A row holds one patch: [channel][temporal][y][x]. Rows stand in merge-block order: groups of
 * frames, then blocks of merge x merge patches from left to right and down, then the patches inside
 * a block the same way, so that consecutive rows make one token. Plain raster order looks plausible
 * and is wrong.
 *
 * The reference normalises in one of two ways, which differ in the last bit for half of all bytes:
 * torchvision as (x - 255 mean) / (255 std) in f32, Pillow's backend as x / 255 in double, rounded
 * to f32, then (v - mean) / std. Bytes have 256 values, so a table does either. */
#include "media/media.h"

enum { CHANNELS = 3, BYTES = 256 };

static void fill_table(float table[CHANNELS][BYTES], const media_rules *rules,
                       media_backend backend) {
    for (int c = 0; c < CHANNELS; c++) {
        const float mean = rules->mean[c], std = rules->std[c];
        for (int v = 0; v < BYTES; v++) {
            if (backend == MEDIA_BACKEND_PIL)
                table[c][v] = ((float)(v * (1.0 / 255.0)) - mean) / std;
            else
                table[c][v] = ((float)v - mean * 255.0f) / (std * 255.0f);
        }
    }
}

/* One channel of one patch in one frame: [patch, patch]. */
static void gather(float *out, const uint8_t *corner, size_t row_bytes, uint32_t patch,
                   const float *table) {
    for (uint32_t y = 0; y < patch; y++, corner += row_bytes)
        for (uint32_t x = 0; x < patch; x++) *out++ = table[corner[(size_t)x * CHANNELS]];
}

void patch_rows(float *out, const media_item *item, const media_rules *rules, uint32_t first,
                uint32_t n) {
    const uint32_t patch = rules->patch, merge = rules->merge, temporal = rules->temporal;
    const uint32_t blocks = item->grid.w / merge, in_block = merge * merge;
    const uint32_t group_rows = item->grid.h * item->grid.w;
    const size_t row_bytes = (size_t)item->grid.w * patch * CHANNELS;
    const size_t frame_bytes = (size_t)item->grid.h * patch * row_bytes;
    const size_t area = (size_t)patch * patch;
    float table[CHANNELS][BYTES];
    fill_table(table, rules, item->backend);
    for (uint32_t i = first; i < first + n; i++) {
        const uint32_t group = i / group_rows, place = i % group_rows;
        const uint32_t block = place / in_block, inner = place % in_block;
        const uint32_t row = block / blocks * merge + inner / merge;
        const uint32_t column = block % blocks * merge + inner % merge;
        const size_t corner = row * patch * row_bytes + (size_t)column * patch * CHANNELS;
        for (uint32_t c = 0; c < CHANNELS; c++)
            for (uint32_t t = 0; t < temporal; t++, out += area) {
                if (!item->video && t > 0) { /* a picture fills all its frames */
                    memcpy(out, out - area, area * sizeof *out);
                    continue;
                }
                const size_t frame = item->video ? (size_t)group * temporal + t : 0;
                gather(out, item->rgb + frame * frame_bytes + corner + c, row_bytes, patch,
                       table[c]);
            }
    }
}
