#include "conv2d_f32_by_rows.h"

#include "mcud_dot_f32.h"

/* Adds the products of `values` values and every channel's weights, which lie `depth` apart, from `w` on. */
static void add_run(const float *x, const float *w, int32_t depth, int32_t values, int32_t channels, float *sums)
{
    int32_t k = 0;
    for (; k + 4 <= channels; k += 4) {
        mcud_dot4_f32(x, w, depth, values, sums + k);
        w += 4 * depth;
    }
    for (; k < channels; k++) {
        sums[k] = mcud_dot_f32(x, w, values, sums[k]);
        w += depth;
    }
}

void mcud_conv2d_f32_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_by_rows_params *params = op->params;
    const int32_t channels = params->output_channels;
    const int32_t depth = (int32_t)op->rows * params->row_values;
    float *sums = mcud_row(op->scratch, first_row);
    for (int32_t k = 0; first_row == 0 && k < channels; k++) {
        sums[k] = params->bias[k];
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        const float *w = params->weights + row * params->row_values;
        add_run(mcud_row(op->in[0], row), w, depth, (run_end - row) * params->row_values, channels, sums);
        row = run_end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    float *out = mcud_row(op->out, 0);
    for (int32_t k = 0; k < channels; k++) {
        out[k] = mcud_clamp_f32(sums[k], params->low, params->high);
    }
}
