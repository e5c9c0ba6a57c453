/* Copies every step-th element from a start, in each dimension; elements of 1, 2 or 4 bytes. Steps may be negative.
 *
 * in[0]    [...][...]
 * out      [rows][cols][channels]
 */
#ifndef MCUD_SLICE_H
#define MCUD_SLICE_H

#include "mcud.h"

typedef struct {
    int32_t first_row;
    int32_t row_step;
    int32_t first_element; /* of an input row; this and the following steps count elements */
    int32_t cols;
    int32_t col_step;
    int32_t channels;
    int32_t channel_step;
    int32_t element_bytes; /* 1, 2 or 4 */
} mcud_slice_params;

mcud_kernel mcud_slice;

#endif
