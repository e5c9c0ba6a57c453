/* Convolution, int8: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then int8 [2][patch_values]
 *
 * The patches of two output pixels are gathered, padding as the input's zero point, and multiplied with
 * the weights in blocks of 2 x 2. A leftover pixel takes blocks of four channels.
 */
#ifndef MCUD_CONV2D_S8_H
#define MCUD_CONV2D_S8_H

#include "mcud.h"

typedef struct {
    const int8_t *weights;      /* [output_channels][kernel_rows][kernel_cols][group_inputs] */
    const int32_t *bias;        /* [output_channels], minus input zero point times the sum of the weights */
    const int32_t *multipliers; /* [output_channels] */
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
    int32_t shift;            /* 1..62 */
    int32_t input_zero_point; /* -128..127, as the following ones */
    int32_t output_zero_point;
    int32_t low;
    int32_t high;
} mcud_conv2d_s8_params;

mcud_kernel mcud_conv2d_s8;

#endif
