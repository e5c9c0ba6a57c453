/* Convolution of few input channels by vectors, int8: one group, no dilation of columns.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  int8_t [columns][kernel_rows][input_channels]: the columns under a row of windows; then int8_t [15], which
 *          vectors read beyond the last column, without effect on results
 *
 * A window is a number of neighbouring columns, which the kernel reads in place.
 */
#ifndef MCUD_CONV2D_S8_FIRST_MVE_H
#define MCUD_CONV2D_S8_FIRST_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels] by columns, see mcud_dot_vector_s8.h */
    mcud_conv_dims dims;           /* the values of 16 / input_channels columns are at most 256 */
    mcud_window window;
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_first_mve_params;

mcud_kernel mcud_conv2d_s8_first_mve;

#endif
