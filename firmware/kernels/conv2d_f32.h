/* Convolution, float32: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then float [2][patch_values]
 *
 * The patches of two output pixels are gathered, padding as zeros, and multiplied with the weights in
 * blocks of 2 pixels x 4 channels. A leftover pixel takes blocks of four channels.
 */
#ifndef MCUD_CONV2D_F32_H
#define MCUD_CONV2D_F32_H

#include "mcud.h"

typedef struct {
    const float *weights; /* [output_channels][kernel_rows][kernel_cols][group_inputs] */
    const float *bias;    /* [output_channels] */
    int32_t input_rows;
    int32_t input_cols;
    int32_t input_channels;
    int32_t output_cols;
    int32_t output_channels;
    int32_t kernel_rows;
    int32_t kernel_cols;
    int32_t stride_rows;
    int32_t stride_cols;
    int32_t dilation_rows;
    int32_t dilation_cols;
    int32_t pad_top;
    int32_t pad_left;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t patch_values;  /* kernel_rows * kernel_cols * group_inputs */
    float low;
    float high;
} mcud_conv2d_f32_params;

mcud_kernel mcud_conv2d_f32;

#endif
