#include "conv2d_s8_by_rows.h"

#include "mcud_dot_s8.h"

/* Adds the products of `values` values and every channel's weights from `w` on. */
static void add_run(const mcud_channels_s8 *to, const int8_t *x, const int8_t *w, int32_t values, int32_t *sums)
{
    int32_t k = 0;
    for (; k + 4 <= to->channels; k += 4) {
        mcud_dot4_s8(x, w, to->depth, values, sums + k);
        w += 4 * to->depth;
    }
    for (; k < to->channels; k++) {
        sums[k] = mcud_dot_s8(x, w, values, sums[k]);
        w += to->depth;
    }
}

void mcud_conv2d_s8_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    const mcud_channels_s8 to = {
        .weights = params->weights,
        .bias = params->bias,
        .multipliers = params->multipliers,
        .channels = params->output_channels,
        .depth = (int32_t)op->rows * params->row_values,
        .shift = params->shift,
        .zero_point = params->output_zero_point,
        .low = params->low,
        .high = params->high,
    };
    int32_t *sums = mcud_row(op->scratch, first_row);
    for (int32_t k = 0; first_row == 0 && k < to.channels; k++) {
        sums[k] = to.bias[k];
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        const int8_t *w = to.weights + row * params->row_values;
        add_run(&to, mcud_row(op->in[0], row), w, (run_end - row) * params->row_values, sums);
        row = run_end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    int8_t *out = mcud_row(op->out, 0);
    for (int32_t k = 0; k < to.channels; k++) {
        out[k] = mcud_channel_s8(&to, k, sums[k]);
    }
}
