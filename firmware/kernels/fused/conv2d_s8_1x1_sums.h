/* Pointwise convolution, int8, whose input channels come in groups: a call adds the products of one group to the sums
 * of all pixels, and the call of the last group writes the output. The results equal those of conv2d_s8_1x1 bit for
 * bit.
 *
 * Groups are [first_row, end_row) = [group, group + 1); op->rows has the number of pixels.
 *
 * in[0]    int8 [pixels][values of the group]: group_values, or the rest in the last group
 * out      int8 [pixels][output_channels]
 * scratch  int32_t [pixels][output_channels], the sums, kept from the first call to the last
 */
#ifndef MCUD_CONV2D_S8_1X1_SUMS_H
#define MCUD_CONV2D_S8_1X1_SUMS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 output channels, then single ones], see mcud_dot_row_s8.h */
    int32_t group_values;          /* a multiple of 4 */
    int32_t input_channels;        /* a multiple of 4 */
    int32_t output_channels;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_1x1_sums_params;

mcud_kernel mcud_conv2d_s8_1x1_sums;

#endif
