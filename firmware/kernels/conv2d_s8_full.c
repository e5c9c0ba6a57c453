#include "conv2d_s8_full.h"

#include "mcud_dot_row_s8.h"
#include "mcud_dot_s8.h"

/* An input that lies in one piece, in whole groups. */
static void multiply(const mcud_conv2d_s8_full_params *params, const int8_t *x, int32_t values, int8_t *y)
{
    const mcud_finish_s8 finish = {params->output_zero_point, params->left, 0};
    const int8_t *const ends[2] = {x + (values & 12), x + values};
    const int32_t *record = params->records;
    int8_t last[4]; /* results of a record that the output has no room for */
    for (int32_t left = params->output_channels; left > 0; left -= 4) {
        record = mcud_record_1x4(x, ends, record, &finish, left < 4 ? last : y);
        y += 4;
    }
    for (int32_t i = params->output_channels & 3; i > 0; i--) {
        y[i - 5] = last[i - 1];
    }
}

/* Any other one, row by row. */
static void multiply_rows(const mcud_conv2d_s8_full_params *params, const mcud_tensor *in, int8_t *y)
{
    const mcud_finish_s8 finish = {params->output_zero_point, params->left, 0};
    const int32_t *at = params->records;
    for (int32_t left = params->output_channels; left > 0; left -= 4) {
        int32_t sums[4] = {at[0], at[1], at[2], at[3]};
        at += 4;
        for (int32_t r = 0; r < params->input_rows; r++) {
            at = mcud_dot_row_s8(mcud_row(in, r), params->row_values, at, sums);
        }
        mcud_finish_row_s8(sums, at, &finish, left, y);
        at += 4;
        y += 4;
    }
}

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    int8_t *const out = mcud_row(op->out, first_row);
    const int32_t rows = params->input_rows;
    if (params->row_values % 4 == 0 && mcud_run_end(op->in[0], 0, rows) == rows) {
        multiply(params, mcud_row(op->in[0], 0), rows * params->row_values, out);
    } else {
        multiply_rows(params, op->in[0], out);
    }
    mcud_clip_s8(out, params->output_channels, params->low, params->high);
}
