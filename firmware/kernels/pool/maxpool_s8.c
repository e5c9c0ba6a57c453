#include "maxpool_s8.h"

#include "mcud_bytes.h"
#include "mcud_window.h"

void mcud_maxpool_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    mcud_byte_window window = {.pitch = params->window.dilation_cols * params->dims.channels};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const mcud_taps rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, rows, offsets);
        window.offsets = offsets + rows.first;
        window.rows = rows.end - rows.first;
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0, count; col < params->dims.output_cols;
             col += count, left += count * params->window.stride_cols) {
            count = mcud_joined_outputs(&params->window, left, params->dims.input_cols,
                                        params->dims.output_cols - col);
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            window.memory =
                op->in[0]->memory + (left + cols.first * params->window.dilation_cols) * params->dims.channels;
            window.cols = cols.end - cols.first;
            mcud_max_window(&window, count * params->dims.channels, out);
            out += count * params->dims.channels;
        }
    }
}
