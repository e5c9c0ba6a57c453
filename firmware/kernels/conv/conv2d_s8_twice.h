/* Convolution, int8, whose results are rounded twice, as by TFLite's reference kernels: any kernel, stride, dilation,
 * padding, groups.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Reads the input where it is, four output channels at a time; fastest if a window lies in one piece and is a multiple
 * of four values.
 */
#ifndef MCUD_CONV2D_S8_TWICE_H
#define MCUD_CONV2D_S8_TWICE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][fours of a group's outputs, then single ones], see mcud_dot_row_s8.h */
    const int8_t *exponents;       /* [output_channels] */
    const int8_t *padding;         /* [run_values], all the input's zero point; NULL without padding */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t row_runs;      /* runs of adjacent values in a row of a window: 1, or its columns */
    int32_t run_values;
    mcud_twice_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_twice_params;

mcud_kernel mcud_conv2d_s8_twice;

#endif
