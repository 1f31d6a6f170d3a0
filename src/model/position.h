/* position.h - positions of rows in a record, and their rotary angles. MODEL.md section 2, "Full
 * attention". */
#ifndef MODEL_POSITION_H
#define MODEL_POSITION_H

#include "checkpoint/config.h"

/* out [rotary_dim / 2]: theta^(-2i / rotary_dim), rounded as the reference rounds it. */
void position_frequencies(float *out, const config *cfg);

/* Cosines and sines [n_rows, n] of consecutive text positions first, first + 1, ...; `frequencies`
 * has n entries. In text the three M-RoPE planes are equal, so the sections do not show. */
void position_angles(float *cos, float *sin, const float *frequencies, uint32_t n, uint32_t first,
                     uint32_t n_rows);

/* Rows of a record that are a picture or one frame group of a video: rows * columns of them, from
 * `begin` on. */
typedef struct {
    uint32_t begin;
    uint32_t rows, columns; /* of the merged grid */
} position_picture;

/* A row's place in time, height and width. */
typedef struct {
    uint32_t axis[3];
} position;

/* Fills out [n_tokens] for a record in which `pictures` [n_pictures] lie in rising order without
 * overlap. Text counts on along all axes; a picture takes one step in time and lies in the plane of
 * the other two, and what follows it counts on behind its longer side. */
void position_planes(position *out, uint32_t n_tokens, const position_picture *pictures,
                     uint32_t n_pictures);

/* position_angles for rows of any positions [n_rows]: of the rotary_dim / 2 frequencies,
 * interleaved by threes, cfg->rope_sections turn with height and with width, the others with time.
 */
void position_plane_angles(float *cos, float *sin, const float *frequencies, const config *cfg,
                           const position *positions, uint32_t n_rows);

#endif
