/* Depthwise convolution by windows of 3x3, int8, by pairs of rows, without dilation, with a stride of 1 or 2 along the
 * columns.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int32_t [(most_outputs - 1) * stride_cols + 3][MCUD_PAIR_COLUMN]: expanded columns, see mcud_row_pairs_s8.h
 *
 * Takes four channels at a time: expands two input rows as pairs, enough for `most_outputs` outputs of a row. With a
 * stride of 1 along the rows it computes two output rows together. A call expands every pair of rows once if both
 * strides are 1 or both are 2.
 */
#ifndef MCUD_DWCONV2D_S8_ROWS_H
#define MCUD_DWCONV2D_S8_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [channels][MCUD_PAIR_RECORD] */
    mcud_plane_dims dims;
    mcud_window_steps window;
    int32_t most_outputs;
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_dwconv2d_s8_rows_params;

mcud_kernel mcud_dwconv2d_s8_rows;

#endif
