/* Gradient of a depthwise convolution's input, float32, from the gradient of its output.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * in[1]    float [kernel_rows][kernel_cols][output_channels], one row; only if `weights` is NULL
 * out      float [rows][input_cols][input_channels]
 *
 * As conv2d_f32_input_gradient, where output channel k reads input channel k / multiplier only. With multiplier 1 eight
 * neighbouring channels are summed at a time.
 */
#ifndef MCUD_DWCONV2D_F32_INPUT_GRADIENT_H
#define MCUD_DWCONV2D_F32_INPUT_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* as in[1], in flash */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
    int32_t multiplier; /* output channels of each input channel */
} mcud_dwconv2d_f32_input_gradient_params;

mcud_kernel mcud_dwconv2d_f32_input_gradient;

#endif
