/* conv2d_s8_1x1 with RISC-V vector instructions. The parameters are those of conv2d_s8_1x1_mve, except for the record:
 * see mcud_lanes_s8.h.
 *
 * in[0]    int8 [rows][cols][input_channels]; a matrix [B][K] is (B, 1, K)
 * out      int8 [rows][output_cols][output_channels]
 */
#ifndef MCUD_CONV2D_S8_1X1_RVV_H
#define MCUD_CONV2D_S8_1X1_RVV_H

#include "conv2d_s8_1x1_mve.h"

typedef mcud_conv2d_s8_1x1_mve_params mcud_conv2d_s8_1x1_rvv_params;

mcud_kernel mcud_conv2d_s8_1x1_rvv;

#endif
