/* dwconv2d_s8 with RISC-V vector instructions: the parameters are those of dwconv2d_s8_mve, except for the record.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], then pointers [kernel_rows * kernel_cols], aligned
 *
 * Where windows are side by side, the constants of few channels are repeated for the pixels that are computed together.
 * The record (mcud_lanes_s8.h) has the channels of these pixels; its weights may have any values.
 */
#ifndef MCUD_DWCONV2D_S8_RVV_H
#define MCUD_DWCONV2D_S8_RVV_H

#include "dwconv2d_s8_mve.h"

typedef mcud_dwconv2d_s8_mve_params mcud_dwconv2d_s8_rvv_params;

mcud_kernel mcud_dwconv2d_s8_rvv;

#endif
