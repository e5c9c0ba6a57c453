/* Linear resize of rows and columns of 16-bit values by weights of 10 bits; halves round away from zero.
 *
 * in[0]    int16_t [...][...][channels]
 * out      int16_t [rows][out_cols][channels]
 */
#ifndef MCUD_RESIZE_LINEAR_S16_H
#define MCUD_RESIZE_LINEAR_S16_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows; /* [rows][2]: the two input rows that an output row interpolates */
    const uint16_t *cols; /* [out_cols][2] */
    const int16_t *row_weights; /* [rows], of the second row, where 2^10 is 1; may be negative */
    const int16_t *col_weights; /* [out_cols] */
    int32_t out_cols;
    int32_t channels;
} mcud_resize_linear_s16_params;

mcud_kernel mcud_resize_linear_s16;

#endif
