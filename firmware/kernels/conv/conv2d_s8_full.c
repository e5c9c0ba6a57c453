#include "conv2d_s8_full.h"

#include "mcud_dot_row_s8.h"
#include "mcud_dot_s8.h"

/* For an input in several pieces, or whose rows are not whole groups of four. */
static void multiply_rows(const mcud_conv2d_s8_full_params *params, const mcud_tensor *in, int8_t *y)
{
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t *at = params->packed_weights;
    int32_t left = params->output_channels;
    for (; left >= 4; left -= 4) {
        int32_t sums[4] = {at[0], at[1], at[2], at[3]};
        at += 4;
        for (int32_t r = 0; r < params->input_rows; r++) {
            at = mcud_dot_row_s8(mcud_row(in, r), params->row_values, at, sums);
        }
        mcud_finish_row_s8(sums, at, &finish, y);
        at += 4 * MCUD_FACTORS;
        y += 4;
    }
    for (; left > 0; left--) {
        int32_t sum = *at++;
        for (int32_t r = 0; r < params->input_rows; r++) {
            at = mcud_dot_one_s8(mcud_row(in, r), params->row_values, at, &sum);
        }
        const int32_t *const factor = at;
        at += MCUD_FACTORS;
        *y++ = MCUD_RESULT_S8(sum, factor, 1, &finish);
    }
}

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    int8_t *const out = mcud_row(op->out, first_row);
    const int32_t rows = params->input_rows;
    if (rows == 1 || (params->row_values % 4 == 0 && mcud_run_end(op->in[0], 0, rows) == rows)) {
        const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
        const int32_t values = rows * params->row_values;
        mcud_pixel_s8(&finish, params->packed_weights, params->output_channels, mcud_row(op->in[0], 0), values, out);
    } else {
        multiply_rows(params, op->in[0], out);
    }
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
