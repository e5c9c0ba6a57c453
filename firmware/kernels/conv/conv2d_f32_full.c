#include "conv2d_f32_full.h"

#include "mcud_dot_f32.h"
#include "mcud_window.h"

void mcud_conv2d_f32_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_f32_full_params *params = op->params;
    const mcud_channels_f32 to = {
        .channels = params->output_channels,
        .act = {params->act.min, params->act.max},
    };
    const mcud_taps rows = {0, params->input_rows};
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    const float *w = params->weights;
    mcud_window_rows(op->in[0], 0, 1, rows, offsets);
    for (int32_t k = 0; k < to.channels; k += 4) {
        float sums[4];
        mcud_begin_f32(params->bias + k, 1, sums);
        for (int32_t r = 0; r < rows.end; r++, w += 4 * params->row_values) {
            const void *x = op->in[0]->memory + offsets[r];
            mcud_add_1x4_f32(x, w, params->row_values, sums);
        }
        mcud_finish_f32(&to.act, sums, to.channels - k, out + k);
    }
}
