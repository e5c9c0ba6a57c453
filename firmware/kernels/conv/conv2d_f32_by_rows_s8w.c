#include "conv2d_f32_by_rows_s8w.h"

#include <string.h>

#include "mcud_dot_s8w.h"

void mcud_conv2d_f32_by_rows_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_by_rows_s8w_params *params = op->params;
    const mcud_channels_s8w to = {
        .channels = params->output_channels,
        .depth = (int32_t)op->rows * params->row_values,
        .act = {params->act.min, params->act.max},
    };
    float *sums = mcud_row(op->scratch, first_row);
    if (first_row == 0) {
        memcpy(sums, params->bias, (size_t)((to.channels + 3) / 4 * 4) * sizeof *sums);
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        const float *x = mcud_row(op->in[0], row);
        const int8_t *w = params->weights + 4 * row * params->row_values;
        for (int32_t k = 0; k < to.channels; k += 4, w += 4 * to.depth) {
            mcud_add_1x4_s8w(x, w, params->scale + k, (run_end - row) * params->row_values, sums + k);
        }
        row = run_end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    float *out = mcud_row(op->out, 0);
    for (int32_t k = 0; k < to.channels; k += 4) {
        mcud_finish_f32(&to.act, sums + k, to.channels - k, out + k);
    }
}
