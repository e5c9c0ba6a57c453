/* Pointwise convolution and fully connected layer, int8: kernel 1x1, no padding, one group, any stride.
 *
 * in[0]  int8 [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out    int8 [rows][output_cols][output_channels]
 *
 * Reads the input's pixels where they are, two at a time, also across rows.
 */
#ifndef MCUD_CONV2D_S8_1X1_H
#define MCUD_CONV2D_S8_1X1_H

#include "mcud.h"

typedef struct {
    const int8_t *weights;      /* [output_channels][input_channels] */
    const int32_t *bias;        /* [output_channels], minus input zero point times the sum of the weights */
    const int32_t *multipliers; /* [output_channels] */
    int32_t input_channels;
    int32_t output_cols;
    int32_t output_channels;
    int32_t stride_rows;
    int32_t stride_cols;
    int32_t shift;            /* 1..62 */
    int32_t input_zero_point; /* -128..127, as the following ones */
    int32_t output_zero_point;
    int32_t low;
    int32_t high;
} mcud_conv2d_s8_1x1_params;

mcud_kernel mcud_conv2d_s8_1x1;

#endif
