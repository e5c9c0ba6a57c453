/* Depthwise windows of 3x3 by vectors: four rows of four columns are 16 bytes.
 *
 * Columns of 16 channels are interleaved to words of four rows, MCUD_FOUR_ROWS bytes a column. A window begins in the
 * first row of a word, or for a second row of outputs in the second row. A record of a channel is MCUD_FOUR_RECORD
 * words: the bias, the factors, for each column of the window the bytes w0, w1, w2, 0 from top to bottom, a word of 0.
 *
 *   mcud_interleave_rows  four rows to words
 *   mcud_four_rows_s8     outputs of one row or two, in several blocks
 */
#ifndef MCUD_FOUR_ROWS_S8_H
#define MCUD_FOUR_ROWS_S8_H

#include "mcud_vector.h"

enum { MCUD_FOUR_ROWS = 64, MCUD_FOUR_RECORD = 5 + MCUD_FACTORS };

/* Rows of the input; `step` to its next column is 0 in the padding, whose values are all the same. */
typedef struct {
    const int8_t *at[4];
    int32_t step[4];
    int32_t channels; /* 1..16 */
} mcud_rows_of_four;

/* The outputs of up to 16 channels in blocks of one row, or two with a stride of 1. */
typedef struct {
    const int8_t *x;
    int8_t *y;
    const int32_t *records;
    int32_t channels; /* 1..16 */
    int32_t blocks;
    int32_t columns; /* in a block, of the input */
    int32_t outputs; /* in a row */
    int32_t rows;    /* of a block: 1 or 2 */
    int32_t pitch;   /* from a column's results to the next one's */
    int32_t row;     /* from a row's results to the next row's */
    int32_t zero_point;
} mcud_four_rows_outputs;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_four_rows_mve.h"
#else
#include "mcud_four_rows_c.h"
#endif

#endif
