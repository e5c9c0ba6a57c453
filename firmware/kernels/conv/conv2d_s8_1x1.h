/* Pointwise convolution and matrix product with constant weights, int8: kernel 1x1, no padding, one group,
 * any stride. For a single pixel see conv2d_s8_full.
 *
 * in[0]    int8 [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out      int8 [rows][output_cols][output_channels]
 * scratch  int16_t [groups][4][3]: three pixels, expanded
 *
 * Computes three pixels at a time, also across the end of a row; the last two or four by twos.
 */
#ifndef MCUD_CONV2D_S8_1X1_H
#define MCUD_CONV2D_S8_1X1_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [pairs of output channels], see mcud_simd.h */
    mcud_pixel_dims dims;
    int32_t groups; /* of four input channels */
    int32_t stride_rows;
    int32_t pixel_step;        /* bytes from an input pixel to the next used one */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_params;

mcud_kernel mcud_conv2d_s8_1x1;

#endif
