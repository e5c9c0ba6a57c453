/* Convolution by Winograd's tiles of 1 x 4 results, int8: windows of 3x3, stride 1, no dilation, one group.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  int32_t: the transformed input of two tiles, the sums of four channels; see mcud_winograd_s8.h
 */
#ifndef MCUD_CONV2D_S8_W1X4_H
#define MCUD_CONV2D_S8_W1X4_H

#include "mcud_winograd_s8.h"

typedef mcud_winograd_s8_params mcud_conv2d_s8_w1x4_params;

mcud_kernel mcud_conv2d_s8_w1x4;

#endif
