/* Pointwise convolution, int8, without scratch: kernel 1x1, no padding, one group, any stride. The results equal those
 * of conv2d_s8_1x1 bit for bit.
 *
 * in[0]  int8 [rows][cols][input_channels]
 * out    int8 [rows][output_cols][output_channels]
 *
 * Each pixel is multiplied in place, with four output channels at a time.
 */
#ifndef MCUD_CONV2D_S8_1X1_DIRECT_H
#define MCUD_CONV2D_S8_1X1_DIRECT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels, then single ones], see mcud_dot_row_s8.h */
    mcud_pixel_dims dims;
    int32_t stride_rows;
    int32_t pixel_step;        /* bytes from an input pixel to the next used one */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_direct_params;

mcud_kernel mcud_conv2d_s8_1x1_direct;

#endif
