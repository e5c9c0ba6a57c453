/* Any transpose of the input as a flat array; elements of 1, 2 or 4 bytes.
 *
 * in[0]    [...][in_row_elements]
 * out      [...][out_row_elements]
 *
 * The output, row by row, runs through `dims` dimensions, the last one fastest; a step of dimension d
 * moves strides[d] elements in the input.
 */
#ifndef MCUD_TRANSPOSE_H
#define MCUD_TRANSPOSE_H

#include "mcud.h"

typedef struct {
    const uint32_t *sizes; /* [dims] */
    const uint32_t *strides; /* [dims] */
    int32_t dims; /* 1..6 */
    int32_t in_row_elements;
    int32_t out_row_elements;
    int32_t element_bytes; /* 1, 2 or 4 */
} mcud_transpose_params;

mcud_kernel mcud_transpose;

#endif
