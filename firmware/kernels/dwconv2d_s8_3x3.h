/* Depthwise convolution by windows of 3x3, int8, without dilation, with a stride of 1 or 2 along the columns.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int32_t [26 + MCUD_COLUMNS * 6]: an expanded record, expanded columns
 *
 * Of four channels at a time weights and columns of the windows are expanded once, to 16 bits and in the order in which
 * they are multiplied, for up to 12 outputs in a row (6 with a stride of 2).
 */
#ifndef MCUD_DWCONV2D_S8_3X3_H
#define MCUD_DWCONV2D_S8_3X3_H

#include "mcud.h"

enum { MCUD_COLUMNS = 14 };

typedef struct {
    const int32_t *records; /* [fours of channels]: 4 biases, weights [3 columns][3 rows][4] as bytes, 4 multipliers */
    int32_t input_rows;
    int32_t input_cols;
    int32_t channels;
    int32_t output_cols;
    int32_t stride_rows;
    int32_t stride_cols;
    int32_t pad_top;
    int32_t pad_left;
    int32_t input_zero_point;  /* -128..127 */
    int32_t left;              /* sums are times 2^left before their multiplier; 0..30 */
    int32_t output_zero_point; /* -128..127, as the following ones */
    int32_t low;
    int32_t high;
} mcud_dwconv2d_s8_3x3_params;

mcud_kernel mcud_dwconv2d_s8_3x3;

#endif
