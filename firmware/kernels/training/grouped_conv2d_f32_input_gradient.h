/* Gradient of the input of a convolution in groups, float32, from the gradient of its output.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * out      float [rows][input_cols][input_channels]
 *
 * As conv2d_f32_input_gradient, where each group of output channels reads its group of input channels only.
 */
#ifndef MCUD_GROUPED_CONV2D_F32_INPUT_GRADIENT_H
#define MCUD_GROUPED_CONV2D_F32_INPUT_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [output_channels][kernel_rows][kernel_cols][input_channels / groups], in flash */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
    int32_t groups;
} mcud_grouped_conv2d_f32_input_gradient_params;

mcud_kernel mcud_grouped_conv2d_f32_input_gradient;

#endif
