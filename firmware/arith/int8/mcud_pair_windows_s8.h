/* Depthwise windows of 5 or 7 columns by pairs of rows: one header for each instruction set, with the same functions and
 * bits.
 *
 * A column of four channels is MCUD_WINDOW_COLUMN words: for each channel the values of two rows in 16 bits, the upper
 * row in the lower half. Pairs of rows are in a ring. A record of a channel is the bias, the factors, and for each pair
 * of rows the weights of its columns, two to a word: both of the upper row, then both of the lower one. With a stride
 * of 2 even columns come before odd ones. An odd last column has no partner, and neither has an odd last row.
 *
 *   mcud_expand_columns   two rows to one word of every column and channel
 *   mcud_pair_windows_s8  outputs of one row
 */
#ifndef MCUD_PAIR_WINDOWS_S8_H
#define MCUD_PAIR_WINDOWS_S8_H

#include "mcud_pair_row.h"
#include "mcud_simd.h"

enum { MCUD_WINDOW_COLUMN = 4 };

/* The outputs of up to four channels. */
typedef struct {
    int32_t zero_point;
    int32_t pitch;      /* from a column's results to the next one's */
    int32_t pairs;      /* of rows under a window, and in the ring */
    int32_t pair_bytes; /* from a pair of rows to the next one */
    int32_t outputs;    /* in the row; x has columns for the next multiple of four */
    int32_t channels;   /* 1..4 */
    int32_t first;      /* index in the ring of the window's upper pair of rows */
} mcud_pair_windows;

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_pair_windows_dsp.h"
#else
#include "mcud_pair_windows_c.h"
#endif

#endif
