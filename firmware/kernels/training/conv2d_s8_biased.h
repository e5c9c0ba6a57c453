/* Convolution, int8, by a float bias that training changes: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * in[1]    float [output_channels], one row
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], then int8 [patch_groups][4], a window
 *
 * As conv2d_s8_deep, it gathers the window of a pixel, padding as the input's zero point, and multiplies it with four
 * channels at a time.
 */
#ifndef MCUD_CONV2D_S8_BIASED_H
#define MCUD_CONV2D_S8_BIASED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][groups of 4 outputs, then single ones], see mcud_dot_row_s8.h. In place
                                      of its multiplier a channel has a float: the real value of 1 in its sum */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;     /* input_channels / groups */
    int32_t group_outputs;    /* output_channels / groups */
    int32_t patch_groups;     /* kernel_rows * kernel_cols * group_inputs / 4, rounded up */
    int32_t input_zero_point; /* -128..127 */
    float scale;              /* of the output */
    int32_t zero_point;       /* of the output, -128..127 */
    mcud_act_s8 act;
} mcud_conv2d_s8_biased_params;

mcud_kernel mcud_conv2d_s8_biased;

#endif
