/* Depthwise convolution, int8, whose weights need nine bits, such as uint8 less a zero point: output channel k reads
 * input channel k / multiplier only.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * A weight is an int8 plus the offset of its channel. Sums one channel at a time; padded taps are skipped.
 */
#ifndef MCUD_DWCONV2D_S8_ASYMMETRIC_H
#define MCUD_DWCONV2D_S8_ASYMMETRIC_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights;      /* [kernel_rows][kernel_cols][output_channels] */
    const int16_t *offsets;     /* [output_channels], of the weights */
    const int32_t *bias;        /* [output_channels], without the input's zero point */
    const int32_t *multipliers; /* [output_channels] */
    const int8_t *exponents;    /* [output_channels] if results are rounded twice, see mcud_scale_twice, or NULL */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier;       /* output channels of each input channel */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_asymmetric_params;

mcud_kernel mcud_dwconv2d_s8_asymmetric;

#endif
