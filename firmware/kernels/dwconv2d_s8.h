/* Depthwise convolution, int8: every channel has its own kernel.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], then pointers [kernel_rows * kernel_cols], aligned
 *
 * Four neighbouring channels are summed at a time, two taps at a time. The taps of a window are found once
 * for all pixels of a row whose windows lie inside the input, and for every other one.
 */
#ifndef MCUD_DWCONV2D_S8_H
#define MCUD_DWCONV2D_S8_H

#include "mcud.h"
#include "mcud_window.h"

typedef struct {
    const int32_t *records; /* [fours of channels], see mcud_simd.h */
    const int8_t *padding;  /* [channels], all the input's zero point */
    int32_t input_rows;
    int32_t input_cols;
    int32_t channels;
    int32_t output_cols;
    mcud_window window;
    int32_t left;              /* sums are times 2^left before their multiplier; 0..30 */
    int32_t output_zero_point; /* -128..127, as the following ones */
    int32_t low;
    int32_t high;
} mcud_dwconv2d_s8_params;

mcud_kernel mcud_dwconv2d_s8;

#endif
