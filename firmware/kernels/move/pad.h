/* Constant padding; elements of 1, 2 or 4 bytes. Negative counts of padding crop.
 *
 * in[0]    [rows][cols][channels]
 * out      [...][out_cols][out_channels]
 */
#ifndef MCUD_PAD_H
#define MCUD_PAD_H

#include "mcud.h"

typedef struct {
    int32_t rows;
    int32_t row_before;
    int32_t cols;
    int32_t col_before;
    int32_t out_cols;
    int32_t channels;
    int32_t channel_before;
    int32_t out_channels;
    int32_t element_bytes; /* 1, 2 or 4 */
    int32_t fill; /* bits of a padding element */
} mcud_pad_params;

mcud_kernel mcud_pad;

#endif
