#include "conv2d_s8_full.h"

#include "mcud_dot_row_s8.h"
#include "mcud_window.h"

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    const mcud_channels_s8 to = {
        .multipliers = params->multipliers,
        .channels = params->output_channels,
        .left = params->left,
        .zero_point = params->output_zero_point,
    };
    const mcud_taps rows = {0, params->input_rows};
    const int32_t row_words = mcud_row_words(params->row_values);
    const int32_t *w = params->weights;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    mcud_window_rows(op->in[0], 0, 1, rows, offsets);
    for (int32_t k = 0; k < to.channels; k += 4) {
        const int32_t *bias = params->bias + k;
        int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
        for (int32_t r = 0; r < rows.end; r++) {
            const void *x = op->in[0]->memory + offsets[r];
            mcud_dot_row_s8(x, w, params->row_values, sums);
            w += row_words;
        }
        mcud_four_results_s8(&to, k, sums, out);
    }
    mcud_clip_s8(out, to.channels, params->low, params->high);
}
