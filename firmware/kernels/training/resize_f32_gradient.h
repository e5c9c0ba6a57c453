/* Gradient of the input of a resize by neighbours or by linear interpolation, float32, from that of its output.
 *
 * in[0]    float [output_rows][output_cols][channels], gradient of the output
 * out      float [rows][input_cols][channels]
 *
 * Output row r is (1 - f) * input row rows[r] + f * input row rows[r] + 1, where f = row_fractions[r], 0 <= f < 1.
 * Columns likewise. Both input rows get these shares of the gradient.
 */
#ifndef MCUD_RESIZE_F32_GRADIENT_H
#define MCUD_RESIZE_F32_GRADIENT_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows; /* [output_rows] */
    const uint16_t *cols; /* [output_cols] */
    const float *row_fractions;
    const float *col_fractions;
    int32_t output_rows;
    int32_t output_cols;
    int32_t input_cols;
    int32_t channels;
} mcud_resize_f32_gradient_params;

mcud_kernel mcud_resize_f32_gradient;

#endif
