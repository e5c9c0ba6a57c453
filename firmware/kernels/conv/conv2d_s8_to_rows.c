#include "conv2d_s8_to_rows.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_row_s8.h"

void mcud_conv2d_s8_to_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_to_rows_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t channels = params->row_channels;
    const int8_t *x = mcud_row(op->in[0], 0);
    const int32_t *record = params->packed_weights + first_row * params->row_words;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    /* records of whole groups of 4 channels are contiguous, and so are the rows of a block */
    const int32_t together = channels % 4 == 0 ? end_row - first_row : 1;
    for (int32_t row = first_row; row < end_row; row += together) {
        record = mcud_pixel_s8(&finish, record, together * channels, x, params->input_channels, y);
        y += together * channels;
    }
    mcud_clip_s8(out, (end_row - first_row) * channels, params->act.min, params->act.max);
}
