/* Convolution of few input channels, int8, with weights stored in 16 bits: one group, no dilation of columns, scales
 * under 0.5.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  int16_t [columns][column_pairs][2]: the columns under a part of a row of windows, expanded
 *
 * A column has the values of one input column in all rows of a window. Values of two rows alternate; those of an odd
 * last row are in sequence, filled up to a pair. A window is a number of neighbouring columns, which the kernel reads
 * in place.
 */
#ifndef MCUD_CONV2D_S8_FIRST_WIDE_H
#define MCUD_CONV2D_S8_FIRST_WIDE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [pairs of output channels], see mcud_wide_s8.h */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t column_pairs; /* kernel_rows * input_channels / 2, rounded up */
    int32_t part_cols;    /* output columns of a part, a multiple of 3 if there are several parts */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_conv2d_s8_first_wide_params;

mcud_kernel mcud_conv2d_s8_first_wide;

#endif
