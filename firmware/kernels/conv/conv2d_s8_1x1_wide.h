/* Pointwise convolution, int8, with weights stored in 16 bits: as conv2d_s8_1x1, for scales under 0.5.
 *
 * in[0]    int8 [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out      int8 [rows][output_cols][output_channels]
 * scratch  int16_t [most_pixels][pairs][2]: pixels, expanded
 *
 * Multiplies three or four pixels at a time, also across rows, and the last ones singly.
 */
#ifndef MCUD_CONV2D_S8_1X1_WIDE_H
#define MCUD_CONV2D_S8_1X1_WIDE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [pairs of output channels], see mcud_wide_s8.h */
    mcud_pixel_dims dims;
    int32_t pairs; /* of input channels, a multiple of two */
    int32_t most_pixels; /* taken at a time: 3 or 4 */
    int32_t stride_rows;
    int32_t pixel_step; /* bytes from an input pixel to the next used one */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_wide_params;

mcud_kernel mcud_conv2d_s8_1x1_wide;

#endif
