/* Pointwise convolution and fully connected layer, float32: kernel 1x1, no padding, one group, any stride.
 *
 * in[0]  float [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out    float [rows][output_cols][output_channels]
 *
 * Reads the input's pixels where they are, two at a time, also across rows.
 */
#ifndef MCUD_CONV2D_F32_1X1_H
#define MCUD_CONV2D_F32_1X1_H

#include "mcud.h"

typedef struct {
    const float *weights; /* [output_channels][input_channels] */
    const float *bias;    /* [output_channels] */
    int32_t input_channels;
    int32_t output_cols;
    int32_t output_channels;
    int32_t stride_rows;
    int32_t stride_cols;
    float low;
    float high;
} mcud_conv2d_f32_1x1_params;

mcud_kernel mcud_conv2d_f32_1x1;

#endif
