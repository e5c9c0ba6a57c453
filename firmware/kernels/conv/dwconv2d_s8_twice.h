/* Depthwise convolution, int8, whose results are rounded twice, as by TFLite's reference kernels.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], then pointers [kernel_rows * kernel_cols], aligned
 */
#ifndef MCUD_DWCONV2D_S8_TWICE_H
#define MCUD_DWCONV2D_S8_TWICE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [fours of channels], see mcud_simd.h */
    const int8_t *exponents;       /* [channels] */
    const int8_t *padding;         /* [channels], all the input's zero point */
    mcud_plane_dims dims;
    mcud_window window;
    mcud_twice_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_twice_params;

mcud_kernel mcud_dwconv2d_s8_twice;

#endif
