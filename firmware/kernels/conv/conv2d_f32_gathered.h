/* Convolution, float32, with few values in a window: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then float [4][patch_values]
 *
 * Gathers the windows of four output pixels, also across rows, with zeros as padding, and multiplies them as a
 * pointwise convolution does. This is faster than conv2d_f32 if windows have only short runs of values in the input.
 */
#ifndef MCUD_CONV2D_F32_GATHERED_H
#define MCUD_CONV2D_F32_GATHERED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [groups][groups of 4 channels][kernel_rows][kernel_cols][group_inputs][4] */
    const float *bias;    /* [groups][groups of 4 channels][4] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t patch_values;  /* kernel_rows * kernel_cols * group_inputs */
    mcud_act_f32 act;
} mcud_conv2d_f32_gathered_params;

mcud_kernel mcud_conv2d_f32_gathered;

#endif
