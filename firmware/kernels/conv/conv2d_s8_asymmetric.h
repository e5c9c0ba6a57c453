/* Convolution, int8, whose weights need nine bits, such as uint8 less a zero point: any kernel, stride, dilation,
 * padding, groups.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then int8 [patch_groups][4], a window
 *
 * A weight is an int8 plus the offset of its channel. The kernel gathers the window of a pixel, padding as the input's
 * zero point, and multiplies it with four channels at a time. To each result it adds the sum of the window times the
 * offset.
 */
#ifndef MCUD_CONV2D_S8_ASYMMETRIC_H
#define MCUD_CONV2D_S8_ASYMMETRIC_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][groups of 4 outputs, then single ones], see mcud_dot_row_s8.h */
    const int16_t *offsets;        /* [output_channels], of the weights */
    const int8_t *exponents;       /* [output_channels] if results are rounded twice, see mcud_scale_twice, or NULL */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;     /* input_channels / groups */
    int32_t group_outputs;    /* output_channels / groups */
    int32_t window_values;    /* kernel_rows * kernel_cols * group_inputs */
    int32_t patch_groups;     /* window_values / 4, rounded up */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_asymmetric_params;

mcud_kernel mcud_conv2d_s8_asymmetric;

#endif
