/* Gradient of the argument of a function, float32: the result's gradient times the slope. The slope has three pieces
 * over a value v, the function's argument or its result.
 *
 * in[0]    float [rows][row_elements], gradient of the result
 * in[1]    float [rows][row_elements], the values
 * out      float [rows][row_elements]; may be in[0] or in[1]
 *
 * The slope is lower_0 + lower_1 * v where v <= low, else `upper` where v >= high, and else
 * middle_0 + v * (middle_1 + v * middle_2).
 */
#ifndef MCUD_PIECEWISE_F32_GRADIENT_H
#define MCUD_PIECEWISE_F32_GRADIENT_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float low;
    float high;
    float lower_0;
    float lower_1;
    float middle_0;
    float middle_1;
    float middle_2;
    float upper;
} mcud_piecewise_f32_gradient_params;

mcud_kernel mcud_piecewise_f32_gradient;

#endif
