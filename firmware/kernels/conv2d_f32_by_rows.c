#include "conv2d_f32_by_rows.h"

#include "mcud_dot_f32.h"

void mcud_conv2d_f32_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_by_rows_params *params = op->params;
    const int32_t channels = params->output_channels;
    const int32_t depth = (int32_t)op->rows * params->row_values;
    const int32_t values = (end_row - first_row) * params->row_values; /* of one block: contiguous */
    const float *x = mcud_row(op->in[0], first_row);
    float *sums = mcud_row(op->scratch, first_row);
    const float *w = params->weights + first_row * params->row_values;
    for (int32_t k = 0; first_row == 0 && k < channels; k++) {
        sums[k] = params->bias[k];
    }
    int32_t k = 0;
    for (; k + 4 <= channels; k += 4) {
        mcud_dot4_f32(x, w, depth, values, sums + k);
        w += 4 * depth;
    }
    for (; k < channels; k++) {
        sums[k] = mcud_dot_f32(x, w, values, sums[k]);
        w += depth;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    float *out = mcud_row(op->out, 0);
    for (k = 0; k < channels; k++) {
        out[k] = mcud_clamp_f32(sums[k], params->low, params->high);
    }
}
