/* conv2d_s16 for one group and sums of 32 bits: computes two or three pixels of a row and two output channels at a
 * time. Output rows have at least two pixels.
 *
 * in[0]    int16_t [input_rows][input_cols][input_channels]
 * out      int16_t [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], int16_t [4][patch_groups][4]: expanded pixels, then a window that is copied
 */
#ifndef MCUD_CONV2D_S16_3X2_H
#define MCUD_CONV2D_S16_3X2_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [pairs of outputs], see mcud_pixels_s16.h */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t patch_groups; /* groups of four values under a window */
    int32_t piece;        /* 1: a window within the columns is one run, if its rows are adjacent in memory */
    mcud_wide_quant quant;
    mcud_act_s16 act;
} mcud_conv2d_s16_3x2_params;

mcud_kernel mcud_conv2d_s16_3x2;

#endif
