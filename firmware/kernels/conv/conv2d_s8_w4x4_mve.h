/* conv2d_s8_w4x4 by vectors: the depth is a multiple of 8.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  the transformed input of two tiles, the sums of four channels; see mcud_winograd_vector.h
 *
 * `padding` is six pixels of zero points, a row of a tile's input.
 */
#ifndef MCUD_CONV2D_S8_W4X4_MVE_H
#define MCUD_CONV2D_S8_W4X4_MVE_H

#include "mcud_winograd_s8.h"

typedef mcud_winograd_s8_params mcud_conv2d_s8_w4x4_mve_params;

mcud_kernel mcud_conv2d_s8_w4x4_mve;

#endif
