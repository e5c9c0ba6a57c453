#include "conv2d_s8_full.h"

#include <string.h>

#include "mcud_dot_row_s8.h"
#include "mcud_window.h"

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    const mcud_channels_s8 to = {.left = params->left, .zero_point = params->output_zero_point};
    const mcud_taps rows = {0, params->input_rows};
    const uint32_t row_values = (uint32_t)params->row_values;
    const int32_t *bias = params->bias;
    const int32_t *multipliers = params->multipliers;
    const int32_t *w = params->weights;
    const uint8_t *const memory = op->in[0]->memory;
    uint32_t *const offsets = mcud_row(op->scratch, first_row);
    const uint32_t *const offsets_end = offsets + rows.end;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t last[4]; /* results of a block that the output has no room for */
    mcud_window_rows(op->in[0], 0, 1, rows, offsets);
    int32_t k = 0;
    for (; k < params->output_channels; k += 4) {
        int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
        const uint32_t *row = offsets;
        do {
            const void *x = memory + *row++;
            w = mcud_dot_row_s8(x, w, row_values, sums);
        } while (row < offsets_end);
        mcud_four_results_s8(&to, multipliers, sums, k + 4 > params->output_channels ? last : out + k);
        bias += 4;
        multipliers += 4;
    }
    if (k > params->output_channels) {
        memcpy(out + k - 4, last, (size_t)(params->output_channels + 4 - k));
    }
    mcud_clip_s8(out, params->output_channels, params->low, params->high);
}
