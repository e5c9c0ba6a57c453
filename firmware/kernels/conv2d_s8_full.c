#include "conv2d_s8_full.h"

#include <string.h>

#include "mcud_dot_row_s8.h"
#include "mcud_dot_s8.h"
#include "mcud_window.h"

void mcud_conv2d_s8_full(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_params *params = op->params;
    const mcud_taps rows = {0, params->input_rows};
    const mcud_row_s8 shape = {(uint32_t)params->row_values / 4, (uint32_t)params->row_values % 4};
    const int32_t left = params->left;
    const int32_t zero_point = params->output_zero_point;
    const uint8_t *const memory = op->in[0]->memory;
    uint32_t *const offsets = mcud_row(op->scratch, first_row);
    const uint32_t *const offsets_end = offsets + rows.end;
    const int32_t *at = params->records;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *const end = out + params->output_channels;
    int8_t last[4]; /* results of a record that the output has no room for */
    mcud_window_rows(op->in[0], 0, 1, rows, offsets);
    int8_t *y = out;
    for (; y < end; y += 4) {
        int32_t sums[4] = {at[0], at[1], at[2], at[3]};
        const uint32_t *row = offsets;
        at += 4;
        do {
            const void *x = memory + *row++;
            at = mcud_dot_row_s8(&shape, x, at, sums);
        } while (row < offsets_end);
        mcud_four_results_s8(left, zero_point, at, sums, end - y < 4 ? last : y);
        at += 4;
    }
    if (y > end) {
        memcpy(y - 4, last, (size_t)(end + 4 - y));
    }
    mcud_clip_s8(out, params->output_channels, params->low, params->high);
}
