/* dwconv2d_s8 by vectors of 16 channels.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], then pointers [kernel_rows * kernel_cols], aligned
 *
 * The kernel finds the taps of a window once for all pixels of a row whose windows are inside the input, and once for
 * each other pixel. Constants are packed in the order of their use, a record for 16 channels, with 0 for missing ones.
 * Those of 8 or fewer channels are repeated for all pixels that fit a vector, which are computed together:
 *
 *   int32_t bias[16]            of channels 0, 4, 8, 12, then 2, 6, 10, 14, then the odd ones likewise; minus the
 *                               input's zero point times the sum of the weights
 *   int8_t  weights[taps][16]   no two neighbouring taps are both -128
 *   int32_t multipliers[16]     in the order of the biases
 */
#ifndef MCUD_DWCONV2D_S8_MVE_H
#define MCUD_DWCONV2D_S8_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [sixteens of channels] */
    const int8_t *padding;  /* [channels], all the input's zero point */
    mcud_plane_dims dims;
    mcud_window window;
    int32_t first_inside; /* output columns [first_inside, end_inside) have windows without padding */
    int32_t end_inside;
    int32_t pixels; /* side by side in a vector; 1 if their windows are apart, or channels fill vectors */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_mve_params;

mcud_kernel mcud_dwconv2d_s8_mve;

#endif
