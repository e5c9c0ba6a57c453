/* Depthwise windows of 3x3 by pairs of rows: one header for each instruction set, with the same functions and bits.
 *
 * Columns of four channels are expanded to 16 bits, in MCUD_PAIR_COLUMN words: for each channel one word of two rows,
 * then one of the next two rows. `order` is 1 if the second word has the upper rows: then a pair of lower rows is used
 * again as the upper pair. A record of a channel is MCUD_PAIR_RECORD words: the bias, for each column of the window the
 * bytes w0, w1, w1, w2 of its weights from top to bottom, the factors.
 *
 *   mcud_expand_pair  two rows to one word of every column
 *   mcud_expand_row   one row to the lower halves of these words
 *   mcud_expand_three two rows to the first word of every column, and a third one to the second word; of four channels,
 *                     at least one column
 *   mcud_two_rows_s8  outputs of two rows, with a stride of 1
 *   mcud_one_row_s8   outputs of one row, with a stride of 1 or 2 along the columns; `order` is 0 with a stride of 1
 */
#ifndef MCUD_ROW_PAIRS_S8_H
#define MCUD_ROW_PAIRS_S8_H

#include "mcud_pair_row.h"
#include "mcud_simd.h"

enum { MCUD_PAIR_COLUMN = 8, MCUD_PAIR_RECORD = 4 + MCUD_FACTORS };

/* The outputs of up to four channels. */
typedef struct {
    int32_t channels; /* 1..4 */
    int32_t zero_point;
    int32_t pitch;  /* from a column's results to the next one's */
    int32_t row;    /* from a row's results to the next row's */
    int32_t length; /* bytes from the columns of the first window to those after the last one */
} mcud_pair_outputs;

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_row_pairs_dsp.h"
#else
#include "mcud_row_pairs_c.h"
#endif

#endif
