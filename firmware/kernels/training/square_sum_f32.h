/* The sum of the squares of a row, float32.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows]
 *
 * Sums of 64 elements are added to the result, so that rounding errors stay small.
 */
#ifndef MCUD_SQUARE_SUM_F32_H
#define MCUD_SQUARE_SUM_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_square_sum_f32_params;

mcud_kernel mcud_square_sum_f32;

#endif
