/* conv2d_s8_full by vectors. In a record, the weights of each input row are filled up to whole vectors.
 *
 * in[0]    int8 [input_rows][row_values]
 * out      int8 [1][1][output_channels]
 */
#ifndef MCUD_CONV2D_S8_FULL_MVE_H
#define MCUD_CONV2D_S8_FULL_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [pairs of output channels], see mcud_dot_vector_s8.h */
    int32_t input_rows;
    int32_t row_values; /* input columns * input channels */
    int32_t output_channels;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_full_mve_params;

mcud_kernel mcud_conv2d_s8_full_mve;

#endif
