/* conv2d_s8_by_rows with RISC-V vector instructions; results equal those of conv2d_s8_full bit for bit.
 *
 * in[0]    int8 [op->rows][row_values]
 * out      int8 [1][1][output_channels]
 * scratch  int32_t [output_channels], the sums, kept from the first call to the last
 */
#ifndef MCUD_CONV2D_S8_BY_ROWS_RVV_H
#define MCUD_CONV2D_S8_BY_ROWS_RVV_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* one record, see mcud_lanes_s8.h */
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_by_rows_rvv_params;

mcud_kernel mcud_conv2d_s8_by_rows_rvv;

#endif
