#include "smooth_f32_gradient.h"

#include <math.h>

#include "mcud_exponential_f32.h"

static float slope(int32_t function, float x, float alpha)
{
    if (function == MCUD_SLOPE_SWISH) {
        const float s = mcud_sigmoidf(alpha * x);
        return s * (1.0f + alpha * x * (1.0f - s));
    }
    if (function == MCUD_SLOPE_GELU) {
        return 0.5f * (1.0f + erff(0.70710678f * x)) + 0.39894228f * x * mcud_expf(-0.5f * x * x);
    }
    if (function == MCUD_SLOPE_ERF) {
        return 1.1283792f * mcud_expf(-x * x);
    }
    return mcud_sigmoidf(x);
}

void mcud_smooth_f32_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    /* A copy, since the compiler must expect a store to out to change op->params. */
    const mcud_smooth_f32_gradient_params params = *(const mcud_smooth_f32_gradient_params *)op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        const float *x = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            out[i] = gradient[i] * slope(params.function, x[i], params.alpha);
        }
    }
}
