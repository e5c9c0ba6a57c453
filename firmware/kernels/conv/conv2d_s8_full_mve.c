#include "conv2d_s8_full_mve.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_vector_s8.h"

void mcud_conv2d_s8_full_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_mve_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t depth = params->row_values;
    const int32_t *record = params->packed_weights;
    int8_t *const out = mcud_row(op->out, first_row);
    for (int32_t k = 0; k < params->output_channels; k += 2) {
        int32_t sums[2] = {record[0], record[1]};
        record += 2;
        for (int32_t row = 0; row < params->input_rows; row++) {
            record = mcud_vector_dot_1x2(mcud_row(op->in[0], row), depth, record, sums);
        }
        out[k] = MCUD_RESULT_S8(sums[0], record, 2, &finish);
        if (k + 1 < params->output_channels) {
            out[k + 1] = MCUD_RESULT_S8(sums[1], record + 1, 2, &finish);
        }
        record += 2 * MCUD_FACTORS;
    }
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
