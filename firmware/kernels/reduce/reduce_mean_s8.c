#include "reduce_mean_s8.h"

#include "mcud_quant.h"

/* The sum of the elements that reduce to one element of the output; the first one is at `first` in its row. */
static int32_t sum_at(const mcud_reduce_mean_s8_params *params, const mcud_tensor *tensor, int32_t row, int32_t first)
{
    int32_t sum = params->bias;
    for (int32_t r = 0; r < params->rows; r++) {
        const int8_t *run = mcud_row(tensor, row + r);
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

void mcud_reduce_mean_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_reduce_mean_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            for (int32_t channel = 0; channel < params->channels; channel++) {
                const int32_t sum = sum_at(params, op->in[0], row, col * params->col_step + channel);
                const int32_t mean = params->twice
                                         ? mcud_scale_twice(sum, params->quant.multiplier, params->quant.shift)
                                         : mcud_scale_even(sum, params->quant.multiplier, params->quant.shift);
                *out = (int8_t)mcud_clamp(params->quant.zero_point + mean, -128, 127);
                out++;
            }
        }
    }
}
