/* conv2d_s8_1x1 by vectors: reads pixels in place, two to four at a time, also across contiguous rows.
 *
 * in[0]    int8 [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out      int8 [rows][output_cols][output_channels]
 */
#ifndef MCUD_CONV2D_S8_1X1_MVE_H
#define MCUD_CONV2D_S8_1X1_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels], see mcud_dot_vector_s8.h */
    mcud_pixel_dims dims;
    int32_t stride_rows;
    int32_t pixel_step;        /* bytes from an input pixel to the next used one */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_mve_params;

mcud_kernel mcud_conv2d_s8_1x1_mve;

#endif
