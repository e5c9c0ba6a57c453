/* Gradient of a convolution's input, float32, by the packed weights that conv2d_f32 reads too.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * out      float [rows][input_cols][input_channels]
 *
 * As conv2d_f32_input_gradient, with the same bits, for weights that training does not change; mcud_simd_f32.h
 * describes their order. `dims` and `window` are those of the convolution.
 */
#ifndef MCUD_CONV2D_F32_PACKED_GRADIENT_H
#define MCUD_CONV2D_F32_PACKED_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [groups of 4 output channels][kernel_rows][kernel_cols][input_channels][4] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
} mcud_conv2d_f32_packed_gradient_params;

mcud_kernel mcud_conv2d_f32_packed_gradient;

#endif
