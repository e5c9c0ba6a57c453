/* Gradient of a convolution's input, float32, from the gradient of its output.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * in[1]    float [output_channels][kernel_rows][kernel_cols][input_channels], one row
 * out      float [rows][input_cols][input_channels]
 *
 * The gradient of an input value is a sum over taps (r, s) and output channels: the weight times the output's gradient
 * at the pixel whose window has the value at this tap. `dims` and `window` are those of the convolution.
 */
#ifndef MCUD_CONV2D_F32_INPUT_GRADIENT_H
#define MCUD_CONV2D_F32_INPUT_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
} mcud_conv2d_f32_input_gradient_params;

mcud_kernel mcud_conv2d_f32_input_gradient;

#endif
