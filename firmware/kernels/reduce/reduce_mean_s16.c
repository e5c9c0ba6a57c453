#include "reduce_mean_s16.h"

#include "mcud_quant.h"

/* The sum of the elements that reduce to one element of the output; the first one is at `first` in its row. */
static int32_t sum_at(const mcud_reduce_mean_s16_params *params, const mcud_tensor *tensor, int32_t row, int32_t first)
{
    int32_t sum = 0;
    for (int32_t r = 0; r < params->rows; r++) {
        const int16_t *run = mcud_row(tensor, row + r);
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

void mcud_reduce_mean_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_reduce_mean_s16_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        int16_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            for (int32_t channel = 0; channel < params->channels; channel++) {
                const int32_t sum = sum_at(params, op->in[0], row, col * params->col_step + channel);
                const int32_t mean = mcud_scale_twice(sum, params->multiplier, params->exponent);
                *out = (int16_t)mcud_clamp(mean, INT16_MIN, INT16_MAX);
                out++;
            }
        }
    }
}
