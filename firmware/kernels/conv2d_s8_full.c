#include "conv2d_s8_full.h"

#include "mcud_dot_s8.h"
#include "mcud_window.h"

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    const mcud_channels_s8 to = {
        .weights = params->weights,
        .bias = params->bias,
        .multipliers = params->multipliers,
        .channels = params->output_channels,
        .depth = params->input_rows * params->row_values,
        .shift = params->shift,
        .zero_point = params->output_zero_point,
        .low = params->low,
        .high = params->high,
    };
    const mcud_taps rows = {0, params->input_rows};
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    const int8_t *w = to.weights;
    mcud_window_rows(op->in[0], 0, 1, rows, offsets);
    int32_t k = 0;
    for (; k + 4 <= to.channels; k += 4) {
        int32_t sums[4] = {to.bias[k], to.bias[k + 1], to.bias[k + 2], to.bias[k + 3]};
        for (int32_t r = 0; r < rows.end; r++) {
            const void *x = op->in[0]->memory + offsets[r];
            mcud_dot4_s8(x, w + r * params->row_values, to.depth, params->row_values, sums);
        }
        for (int32_t i = 0; i < 4; i++) {
            out[k + i] = mcud_channel_s8(&to, k + i, sums[i]);
        }
        w += 4 * to.depth;
    }
    for (; k < to.channels; k++) {
        int32_t sum = to.bias[k];
        for (int32_t r = 0; r < rows.end; r++) {
            const void *x = op->in[0]->memory + offsets[r];
            sum = mcud_dot_s8(x, w + r * params->row_values, params->row_values, sum);
        }
        out[k] = mcud_channel_s8(&to, k, sum);
        w += to.depth;
    }
}
