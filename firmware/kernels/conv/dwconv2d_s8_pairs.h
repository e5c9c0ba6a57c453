/* Depthwise convolution by windows of 5 or 7 columns, int8, by pairs of rows, without dilation, with a stride of 1 or 2
 * along the columns.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int32_t [pairs of kernel_rows][columns of up to most_outputs outputs][MCUD_WINDOW_COLUMN]: expanded columns,
 *          see mcud_pair_windows_s8.h
 *
 * Pairs of input rows are expanded, four channels at a time, for up to `most_outputs` outputs in a row. With an odd
 * stride of rows, the kernel computes every other row of the output, then the rest: so windows share pairs.
 */
#ifndef MCUD_DWCONV2D_S8_PAIRS_H
#define MCUD_DWCONV2D_S8_PAIRS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [channels] records, see mcud_pair_windows_s8.h */
    mcud_plane_dims dims;
    mcud_window_steps window;
    int32_t kernel_rows;  /* at most 16 */
    int32_t kernel_cols;  /* 5 or 7 */
    int32_t most_outputs; /* a multiple of 4 */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_dwconv2d_s8_pairs_params;

mcud_kernel mcud_dwconv2d_s8_pairs;

#endif
