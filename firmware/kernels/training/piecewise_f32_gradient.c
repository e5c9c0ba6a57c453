#include "piecewise_f32_gradient.h"

static float slope(const mcud_piecewise_f32_gradient_params *of, float v)
{
    if (v <= of->low) {
        return of->lower_0 + of->lower_1 * v;
    }
    if (v >= of->high) {
        return of->upper;
    }
    return of->middle_0 + v * (of->middle_1 + v * of->middle_2);
}

void mcud_piecewise_f32_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    /* A copy, since the compiler must expect a store to out to change op->params. */
    const mcud_piecewise_f32_gradient_params params = *(const mcud_piecewise_f32_gradient_params *)op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        const float *values = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            out[i] = gradient[i] * slope(&params, values[i]);
        }
    }
}
