/* Resamples rows and columns as weighted sums of neighbours, float.
 *
 * in[0]    float [...][input_cols][channels]
 * out      float [...][output_cols][channels]
 * scratch  float [input_cols][channels]
 *
 * Output row r is the sum of row_taps[r] input rows from rows[r] on, times row_weights[r][...]; columns likewise. A row
 * or a column without taps has the value `outside`.
 */
#ifndef MCUD_RESAMPLE_F32_H
#define MCUD_RESAMPLE_F32_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows;
    const uint16_t *row_taps;
    const float *row_weights; /* [...][most_row_taps] */
    const uint16_t *cols; /* [output_cols] */
    const uint16_t *col_taps; /* [output_cols] */
    const float *col_weights; /* [output_cols][most_col_taps] */
    int32_t most_row_taps;
    int32_t most_col_taps;
    int32_t input_cols;
    int32_t output_cols;
    int32_t channels;
    float outside;
} mcud_resample_f32_params;

mcud_kernel mcud_resample_f32;

#endif
