#include "conv2d_s8_by_rows.h"

#include <string.h>

#include "mcud_dot_row_s8.h"

void mcud_conv2d_s8_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    const mcud_channels_s8 to = {.left = params->left, .zero_point = params->output_zero_point};
    const uint32_t row_values = (uint32_t)params->row_values;
    const int32_t row_words = (int32_t)((row_values + 3) / 4 * 4);
    const int32_t other_rows = ((int32_t)op->rows - 1) * row_words;
    int32_t *const sums = mcud_row(op->scratch, first_row);
    if (first_row == 0) {
        memcpy(sums, params->bias, (size_t)params->padded_outputs * sizeof *sums);
    }
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row);
        const int32_t *w = params->weights + row * row_words;
        for (int32_t k = 0; k < params->padded_outputs; k += 4) {
            w = mcud_dot_row_s8(x, w, row_values, sums + k) + other_rows;
        }
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    int8_t *const out = mcud_row(op->out, 0);
    for (int32_t k = 0; k < params->output_channels; k += 4) {
        int8_t results[4];
        const int32_t left = params->output_channels - k;
        mcud_four_results_s8(&to, params->multipliers + k, sums + k, results);
        memcpy(out + k, results, (size_t)(left < 4 ? left : 4));
    }
    mcud_clip_s8(out, params->output_channels, params->low, params->high);
}
