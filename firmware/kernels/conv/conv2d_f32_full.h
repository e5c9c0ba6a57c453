/* Convolution whose kernel is as large as the input, float32: one output pixel, no padding, one group. A
 * fully connected layer after a flatten is one.
 *
 * in[0]    float [input_rows][row_values]
 * out      float [1][1][output_channels]
 * scratch  uint32_t [input_rows]
 *
 * Reads the input in place, row by row, for four output channels at a time. Output channels are padded to a multiple of
 * 4.
 */
#ifndef MCUD_CONV2D_F32_FULL_H
#define MCUD_CONV2D_F32_FULL_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [groups of 4 channels][input_rows][row_values][4] */
    const float *bias;    /* [groups of 4 channels][4] */
    int32_t input_rows;
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    mcud_act_f32 act;
} mcud_conv2d_f32_full_params;

mcud_kernel mcud_conv2d_f32_full;

#endif
