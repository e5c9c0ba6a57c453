/* Winograd's filtering of mcud_winograd_s8.h by vectors of 8 values of 16 bits, for tiles of 4x4 results.
 *
 * Layouts:
 *
 *   input    int16_t [36 positions][depth / 8][2 tiles][8]
 *   weights  int16_t [groups of 4 channels][36 positions][depth / 8][4 channels][8]
 *   factors  [groups of 4 channels][4 channels][2], see mcud_winograd_s8.h; rounded twice,
 *            [groups of 4 channels][3][4 channels]
 *   sums     int32_t [36 positions][2 tiles][4 channels]
 *
 *   mcud_transform_columns  six rows of some columns of a tile's input, along the columns
 *   mcud_transform_rows     the transformed columns of a tile along the rows, in place
 *   mcud_multiply_eights    two tiles by four channels to sums
 *   mcud_finish_four        the sums of a tile and four channels to results
 */
#ifndef MCUD_WINOGRAD_VECTOR_H
#define MCUD_WINOGRAD_VECTOR_H

#include "mcud_quant.h"
#include "mcud_simd.h"

/* Tiles multiplied at a time; the rows and columns of a tile's input and results; values in a vector; channels. */
enum { MCUD_TILES = 2, MCUD_INPUT = 6, MCUD_RESULTS = 4, MCUD_EIGHT = 8, MCUD_FOUR = 4, MCUD_POSITIONS = 36 };

/* The place of a tile's results of four channels. */
typedef struct {
    int8_t *y;
    int32_t pixel;
    int32_t row;
    int32_t zero; /* 2^6 times the zero point; if results are rounded twice, the zero point */
} mcud_four_results;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_winograd_mve.h"
#else
#include "mcud_winograd_vector_c.h"
#endif

#endif
