/* Gradient of the argument x of a function, float32: the result's gradient times the slope at x, by exponentials.
 *
 * in[0]    float [rows][row_elements], gradient of the result
 * in[1]    float [rows][row_elements], x
 * out      float [rows][row_elements]; may be in[0] or in[1]
 */
#ifndef MCUD_SMOOTH_F32_GRADIENT_H
#define MCUD_SMOOTH_F32_GRADIENT_H

#include "mcud.h"

enum {
    MCUD_SLOPE_SWISH = 0,    /* of x / (1 + exp(-alpha * x)) */
    MCUD_SLOPE_GELU = 1,     /* of x / 2 * (1 + erf(x / sqrt(2))) */
    MCUD_SLOPE_ERF = 2,      /* of erf(x) */
    MCUD_SLOPE_SOFTPLUS = 3, /* of log(1 + exp(x)) */
};

typedef struct {
    int32_t row_elements;
    int32_t function; /* one of MCUD_SLOPE_* */
    float alpha;      /* of swish */
} mcud_smooth_f32_gradient_params;

mcud_kernel mcud_smooth_f32_gradient;

#endif
