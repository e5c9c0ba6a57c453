/* Gradient of a convolution's input, float32, by packed int8 weights.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * out      float [rows][input_cols][input_channels]
 * scratch  float [min(input_channels, 64)][4]
 *
 * Weights of four output channels are widened at a time, for all pixels of a row. The results equal those of
 * conv2d_f32_packed_gradient bit for bit. `dims` and `window` are those of the convolution.
 */
#ifndef MCUD_CONV2D_F32_PACKED_GRADIENT_S8W_H
#define MCUD_CONV2D_F32_PACKED_GRADIENT_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [groups of 4 output channels][kernel_rows][kernel_cols][input_channels][4] */
    const float *scale;    /* [groups of 4 output channels][4], of the weights */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
} mcud_conv2d_f32_packed_gradient_s8w_params;

mcud_kernel mcud_conv2d_f32_packed_gradient_s8w;

#endif
