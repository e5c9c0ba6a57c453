/* Depthwise convolution with several output channels to an input channel, int8: output channel k reads input
 * channel k / multiplier only.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then uint32_t [kernel_rows * kernel_cols][2]
 *
 * The kernel lists the window's taps once for all pixels of a row that have the same taps inside the input. Padded taps
 * count as the input's zero point.
 */
#ifndef MCUD_DWCONV2D_S8_MULTIPLIED_H
#define MCUD_DWCONV2D_S8_MULTIPLIED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights;      /* [kernel_rows][kernel_cols][output_channels] */
    const int32_t *bias;        /* [output_channels], minus input zero point times the sum of the weights */
    const int32_t *multipliers; /* [output_channels] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier; /* output channels of each input channel */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_multiplied_params;

mcud_kernel mcud_dwconv2d_s8_multiplied;

#endif
