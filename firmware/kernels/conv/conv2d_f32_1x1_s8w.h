/* Pointwise convolution and fully connected layer, float32, with int8 weights: kernel 1x1, no padding, one group,
 * any stride. The results equal those of conv2d_f32_1x1 bit for bit.
 *
 * in[0]  float [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out    float [rows][output_cols][output_channels]
 *
 * Reads the input's pixels in place, four at a time, also across contiguous rows. Output channels are padded to a
 * multiple of 4.
 */
#ifndef MCUD_CONV2D_F32_1X1_S8W_H
#define MCUD_CONV2D_F32_1X1_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [groups of 4 channels][input_channels][4] */
    const float *scale;    /* [groups of 4 channels][4], of the weights */
    const float *bias;     /* [groups of 4 channels][4] */
    mcud_pixel_dims dims;
    int32_t stride_rows;
    int32_t pixel_step; /* values from one output column's pixel to the next one's */
    int32_t rows_join;  /* 1 if all strides are 1: in a block, the next row's pixels follow */
    mcud_act_f32 act;
} mcud_conv2d_f32_1x1_s8w_params;

mcud_kernel mcud_conv2d_f32_1x1_s8w;

#endif
