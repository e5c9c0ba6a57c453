/* Pointwise convolution, int8, without scratch: kernel 1x1, no padding, one group, any stride. The results equal those
 * of conv2d_s8_1x1 bit for bit.
 *
 * in[0]  int8 [rows][cols][input_channels]
 * out    int8 [rows][output_cols][output_channels]
 *
 * Each pixel is multiplied in place, with eight output channels at a time, whose weights are in pairs. For fully
 * connected layers, and for rows of one or two pixels.
 */
#ifndef MCUD_CONV2D_S8_1X1_DUAL_H
#define MCUD_CONV2D_S8_1X1_DUAL_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [eights of output channels], see mcud_dual_s8.h */
    mcud_pixel_dims dims;          /* input_channels is a multiple of 4 */
    int32_t stride_rows;
    int32_t pixel_step;        /* bytes from an input pixel to the next used one */
    mcud_channel_quant quant;  /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_dual_params;

mcud_kernel mcud_conv2d_s8_1x1_dual;

#endif
