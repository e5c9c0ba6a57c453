/* Softmax over rows, float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]
 *
 * Each row of the output needs every row of the input.
 */
#ifndef MCUD_SOFTMAX_F32_ROWS_H
#define MCUD_SOFTMAX_F32_ROWS_H

#include "mcud.h"

typedef struct {
    int32_t rows;
    int32_t row_elements;
} mcud_softmax_f32_rows_params;

mcud_kernel mcud_softmax_f32_rows;

#endif
