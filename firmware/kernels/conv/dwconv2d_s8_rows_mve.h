/* Depthwise convolution by windows of 3x3, int8, by vectors, without dilation, with a stride of 1 or 2 along the
 * columns.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int8_t [most_blocks][columns][MCUD_FOUR_ROWS]: interleaved columns, see mcud_four_rows_s8.h
 *
 * For 16 channels at a time, it interleaves four input rows that up to `most_outputs` outputs of a row read. With a
 * stride of 1 a block of four input rows gives two output rows, otherwise one. The weights of a channel serve all
 * blocks before those of the next channel.
 */
#ifndef MCUD_DWCONV2D_S8_ROWS_MVE_H
#define MCUD_DWCONV2D_S8_ROWS_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [channels][MCUD_FOUR_RECORD] */
    const int8_t *padding;         /* [channels], all the input's zero point */
    mcud_plane_dims dims;
    mcud_window_steps window;
    int32_t most_outputs;
    int32_t most_blocks; /* 1..8 */
    int32_t columns;     /* of the input that most_outputs read, by whole steps */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_dwconv2d_s8_rows_mve_params;

mcud_kernel mcud_dwconv2d_s8_rows_mve;

#endif
