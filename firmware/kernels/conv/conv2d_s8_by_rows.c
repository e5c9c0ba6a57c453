#include "conv2d_s8_by_rows.h"

#include <string.h>

#include "mcud_dot_row_s8.h"
#include "mcud_dot_s8.h"

void mcud_conv2d_s8_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t row_words = (int32_t)((uint32_t)params->row_values + 3) / 4 * 4;
    const int32_t record_words = 4 + (int32_t)op->rows * row_words + 4;
    int32_t *const sums = mcud_row(op->scratch, first_row);
    const int32_t *record = params->packed_weights;
    for (int32_t k = 0; first_row == 0 && k < params->padded_outputs; k += 4) {
        memcpy(sums + k, record, 4 * sizeof *sums);
        record += record_words;
    }
    for (int32_t row = first_row; row < end_row;) {
        const int8_t *x = mcud_row(op->in[0], row);
        const int32_t *w = params->packed_weights + 4 + row * row_words;
        /* rows without padding after their weights are taken as one, as far as they are contiguous */
        const int32_t end = params->row_values == row_words ? mcud_run_end(op->in[0], row, end_row) : row + 1;
        for (int32_t k = 0; k < params->padded_outputs; k += 4) {
            mcud_dot_row_s8(x, (end - row) * params->row_values, w, sums + k);
            w += record_words;
        }
        row = end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    int8_t *const out = mcud_row(op->out, 0);
    record = params->packed_weights;
    for (int32_t k = 0; k < params->output_channels; k += 4) {
        const int32_t *multipliers = record + record_words - 4;
        mcud_finish_row_s8(sums + k, multipliers, &finish, params->output_channels - k, out + k);
        record += record_words;
    }
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
