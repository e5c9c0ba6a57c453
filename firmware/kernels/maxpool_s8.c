#include "maxpool_s8.h"

#include "mcud_bytes.h"
#include "mcud_window.h"

void mcud_maxpool_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    mcud_byte_window window = {.pitch = params->dilation_cols * params->channels};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        const mcud_taps rows =
            mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, rows, offsets);
        window.offsets = offsets + rows.first;
        window.rows = rows.end - rows.first;
        int32_t left = -params->pad_left;
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            const mcud_taps cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            window.memory = op->in[0]->memory + (left + cols.first * params->dilation_cols) * params->channels;
            window.cols = cols.end - cols.first;
            mcud_max_window(&window, params->channels, out);
            out += params->channels;
        }
    }
}
