/* Convolution whose kernel is as large as the input, int8: one output pixel, no padding, one group. A fully
 * connected layer is one, also after a flatten.
 *
 * in[0]    int8 [input_rows][row_values]
 * out      int8 [1][1][output_channels]
 *
 * Reads the input in place, for four output channels at a time; fastest if the input is contiguous and row_values is a
 * multiple of 4.
 */
#ifndef MCUD_CONV2D_S8_FULL_H
#define MCUD_CONV2D_S8_FULL_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels, then single ones], see mcud_dot_row_s8.h */
    int32_t input_rows;
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_full_params;

mcud_kernel mcud_conv2d_s8_full;

#endif
