/* conv2d_s8 with RISC-V vector instructions. The parameters are those of conv2d_s8_mve, except for the records: see
 * mcud_lanes_s8.h.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], int8 [pixels][patch_values]: windows, gathered
 */
#ifndef MCUD_CONV2D_S8_RVV_H
#define MCUD_CONV2D_S8_RVV_H

#include "conv2d_s8_mve.h"

typedef mcud_conv2d_s8_mve_params mcud_conv2d_s8_rvv_params;

mcud_kernel mcud_conv2d_s8_rvv;

#endif
