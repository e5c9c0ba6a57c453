/* Linear interpolation of rows and columns, float.
 *
 * in[0]    float [...][...][channels]
 * out      float [...][out_cols][channels]
 *
 * Output row r is (1 - f) * input row rows[r] + f * input row rows[r] + 1, where f = row_fractions[r] / 2^32, 0 <= f <
 * 1. If f is 0 the second row is not read. Columns likewise.
 */
#ifndef MCUD_RESIZE_LINEAR_F32_H
#define MCUD_RESIZE_LINEAR_F32_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows;
    const uint16_t *cols; /* [out_cols] */
    const uint32_t *row_fractions; /* 2^32 is 1 */
    const uint32_t *col_fractions; /* [out_cols], 2^32 is 1 */
    int32_t out_cols;
    int32_t channels;
} mcud_resize_linear_f32_params;

mcud_kernel mcud_resize_linear_f32;

#endif
