/* Convolution, int8, with weights stored in 16 bits: as conv2d_s8, for scales under 0.5.
 *
 * scratch  uint32_t [kernel_rows], int16_t [patch_groups][4][most_pixels]: windows, expanded; if row_runs is 1 and
 *          input_channels is not a multiple of 4, then int8 [run_values]
 *
 * The parameters are those of conv2d_s8; records of weights are those of mcud_wide_s8.h, and most_pixels is 3 or 4.
 */
#ifndef MCUD_CONV2D_S8_WIDE_H
#define MCUD_CONV2D_S8_WIDE_H

#include "conv2d_s8.h"

typedef mcud_conv2d_s8_params mcud_conv2d_s8_wide_params;

mcud_kernel mcud_conv2d_s8_wide;

#endif
