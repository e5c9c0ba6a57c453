/* conv2d_s8_by_rows by vectors; results equal those of conv2d_s8_full bit for bit.
 *
 * in[0]    int8 [op->rows][row_values]
 * out      int8 [1][1][output_channels]
 * scratch  int32_t [padded_outputs], the sums, kept from the first call to the last
 */
#ifndef MCUD_CONV2D_S8_BY_ROWS_MVE_H
#define MCUD_CONV2D_S8_BY_ROWS_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [padded_outputs / 2], see conv2d_s8_full_mve.h */
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    int32_t padded_outputs;    /* the next multiple of 2 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_by_rows_mve_params;

mcud_kernel mcud_conv2d_s8_by_rows_mve;

#endif
