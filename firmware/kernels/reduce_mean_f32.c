#include "reduce_mean_f32.h"

/* The sum of the elements behind one element of the output; `first` is the first one's place in a row. */
static float sum_at(const mcud_reduce_mean_f32_params *params, const mcud_tensor *tensor, int32_t row, int32_t first)
{
    float sum = 0.0f;
    for (int32_t r = 0; r < params->rows; r++) {
        const float *run = mcud_row(tensor, row + r);
        run += first;
        for (int32_t o = 0; o < params->outer; o++) {
            for (int32_t i = 0; i < params->inner; i++) {
                sum += run[i];
            }
            run += params->outer_step;
        }
    }
    return sum;
}

void mcud_reduce_mean_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_reduce_mean_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            for (int32_t channel = 0; channel < params->channels; channel++) {
                const float sum = sum_at(params, op->in[0], row, col * params->col_step + channel);
                *out = sum / params->count;
                out++;
            }
        }
    }
}
