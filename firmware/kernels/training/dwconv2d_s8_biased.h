/* Depthwise convolution, int8, by a float bias that training changes: output channel k reads input channel
 * k / multiplier only.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * in[1]    float [output_channels], one row
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Sums one channel at a time; padded taps are skipped.
 */
#ifndef MCUD_DWCONV2D_S8_BIASED_H
#define MCUD_DWCONV2D_S8_BIASED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights;     /* [kernel_rows][kernel_cols][output_channels] */
    const float *weight_scale; /* [output_channels], the real value of 1 in the channel's sum */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier;       /* output channels of each input channel */
    int32_t input_zero_point; /* -128..127 */
    float scale;              /* of the output */
    int32_t zero_point;       /* of the output, -128..127 */
    mcud_act_s8 act;
} mcud_dwconv2d_s8_biased_params;

mcud_kernel mcud_dwconv2d_s8_biased;

#endif
