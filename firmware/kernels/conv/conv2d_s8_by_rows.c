#include "conv2d_s8_by_rows.h"

#include <string.h>

#include "mcud_dot_row_s8.h"
#include "mcud_dot_s8.h"

/* Adds the values of these rows to the sum of the input. The last call returns the sum, the others 0. */
MCUD_NOINLINE int32_t input_total(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    int32_t *const kept = (int32_t *)mcud_row(op->scratch, first_row) + params->output_channels;
    int32_t total = first_row == 0 ? 0 : *kept;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row);
        for (const int8_t *const end = x + params->row_values; x < end; x++) {
            total += *x;
        }
    }
    *kept = total;
    return (uint32_t)end_row < op->rows ? 0 : total;
}

/* Computes the last one to three channels, by records of one channel; `total` is the sum of the input. */
MCUD_NOINLINE void add_ones(const mcud_op *op, int32_t first_row, int32_t end_row, const mcud_finish_s8 *finish,
                            int32_t total)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    const int32_t groups = (int32_t)((uint32_t)params->row_values + 3) / 4;
    const int32_t record_words = 1 + (int32_t)op->rows * groups + MCUD_FACTORS;
    const int32_t fours = params->output_channels & ~3;
    const int32_t *record = params->packed_weights + fours * record_words;
    int32_t *const sums = mcud_row(op->scratch, first_row);
    for (int32_t k = fours; k < params->output_channels; k++, record += record_words) {
        int32_t sum = first_row == 0 ? record[0] : sums[k];
        if (params->offsets != NULL) {
            sum += total * params->offsets[k];
        }
        const int32_t *w = record + 1 + first_row * groups;
        for (int32_t row = first_row; row < end_row; row++) {
            w = mcud_dot_one_s8(mcud_row(op->in[0], row), params->row_values, w, &sum);
        }
        sums[k] = sum;
        if ((uint32_t)end_row == op->rows) {
            int8_t *const out = mcud_row(op->out, 0);
            out[k] = MCUD_RESULT_S8(sum, w, 1, finish);
        }
    }
}

void mcud_conv2d_s8_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t row_words = (int32_t)((uint32_t)params->row_values + 3) / 4 * 4;
    const int32_t record_words = 4 + (int32_t)op->rows * row_words + 4 * MCUD_FACTORS;
    const int32_t fours = params->output_channels & ~3;
    int32_t *const sums = mcud_row(op->scratch, first_row);
    const int32_t *record = params->packed_weights;
    for (int32_t k = 0; first_row == 0 && k < fours; k += 4) {
        memcpy(sums + k, record, 4 * sizeof *sums);
        record += record_words;
    }
    const int32_t total = params->offsets != NULL ? input_total(op, first_row, end_row) : 0;
    for (int32_t k = 0; params->offsets != NULL && k < fours; k++) {
        sums[k] += total * params->offsets[k];
    }
    if (fours < params->output_channels) {
        add_ones(op, first_row, end_row, &finish, total);
    }
    for (int32_t row = first_row; row < end_row;) {
        const int8_t *x = mcud_row(op->in[0], row);
        const int32_t *w = params->packed_weights + 4 + row * row_words;
        /* contiguous rows are taken as one, if no padding follows the weights of a row */
        const int32_t end = params->row_values == row_words ? mcud_run_end(op->in[0], row, end_row) : row + 1;
        for (int32_t k = 0; k < fours; k += 4) {
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
    for (int32_t k = 0; k < fours; k += 4) {
        record += record_words;
        mcud_finish_row_s8(sums + k, record - 4 * MCUD_FACTORS, &finish, out + k);
    }
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
