/* Linear interpolation of rows and columns, int8.
 *
 * in[0]    int8 [...][...][channels]
 * out      int8 [...][out_cols][channels]
 *
 * Output row r is (1 - f) * input row rows[r] + f * input row rows[r] + 1, where f = row_fractions[r] / 2^32, 0 <= f <
 * 1. If f is 0 the second row is not read. Columns likewise.
 *
 * Integer weights give the value with `shift` fraction bits. Within 2^-12 of a tie, float arithmetic in the reference's
 * order of operations decides. With scales by powers of two, that is every sixteenth value.
 */
#ifndef MCUD_RESIZE_LINEAR_S8_H
#define MCUD_RESIZE_LINEAR_S8_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows;
    const uint16_t *cols; /* [out_cols] */
    const uint32_t *row_fractions; /* 2^32 is 1 */
    const uint32_t *col_fractions; /* [out_cols], 2^32 is 1 */
    const int32_t *row_weights; /* (1 - fraction) * input_scale / output_scale * 2^(shift - 22) */
    const int32_t *next_row_weights; /* fraction * input_scale / output_scale * 2^(shift - 22) */
    int32_t out_cols;
    int32_t channels;
    int32_t last_row; /* of the input */
    int32_t last_col;
    int32_t input_zero_point;
    int32_t output_zero_point;
    int32_t shift; /* 23..62 */
    float input_scale;
    float output_scale;
} mcud_resize_linear_s8_params;

mcud_kernel mcud_resize_linear_s8;

#endif
