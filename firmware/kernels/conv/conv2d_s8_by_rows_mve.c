#include "conv2d_s8_by_rows_mve.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_vector_s8.h"

void mcud_conv2d_s8_by_rows_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_mve_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t row_words = (params->row_values + 15) / 16 * 8;
    const int32_t record_words = 2 + 2 * MCUD_FACTORS + (int32_t)op->rows * row_words;
    int32_t *const sums = mcud_row(op->scratch, first_row);
    const int32_t *record = params->packed_weights;
    for (int32_t k = 0; first_row == 0 && k < params->padded_outputs; k += 2, record += record_words) {
        sums[k] = record[0];
        sums[k + 1] = record[1];
    }
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row);
        const int32_t *w = params->packed_weights + 2 + row * row_words;
        for (int32_t k = 0; k < params->padded_outputs; k += 2, w += record_words) {
            mcud_vector_dot_1x2(x, params->row_values, w, sums + k);
        }
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    int8_t *const out = mcud_row(op->out, 0);
    const int32_t *factors = params->packed_weights + record_words - 2 * MCUD_FACTORS;
    for (int32_t k = 0; k < params->output_channels; k++) {
        out[k] = MCUD_RESULT_S8(sums[k], factors + k % 2, 2, &finish);
        factors += k % 2 * record_words;
    }
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
