/* Convolution whose kernel is as large as the input, int8. The input's rows come in blocks: a call adds the products of
 * input rows [first_row, end_row), which lie in one block. Calls come in order of rows, and the last one writes the
 * output. The results equal those of conv2d_s8_full bit for bit.
 *
 * in[0]    int8 [op->rows][row_values]
 * out      int8 [1][1][output_channels]
 * scratch  int32_t [output_channels], the sums; with offsets also int32_t [1], the sum of the input. Both are kept
 *          from the first call to the last.
 */
#ifndef MCUD_CONV2D_S8_BY_ROWS_H
#define MCUD_CONV2D_S8_BY_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels, then single ones], see mcud_dot_row_s8.h */
    const int16_t *offsets; /* [output_channels], to add to the packed weights of a channel; NULL without */
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_by_rows_params;

mcud_kernel mcud_conv2d_s8_by_rows;

#endif
