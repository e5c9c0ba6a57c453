#include "conv2d_s8_wide.h"

#include "mcud_wide_s8.h"

enum { FEW = 1, MOST = 4 };
#include "conv2d_s8_expand.h"

/* Computes all pixels of one group of channels; `out` points to the group's first channel in the first pixel. */
static void convolve(const mcud_op *op, const mcud_wide_s8 *by, window *from, int32_t first_row, int32_t end_row,
                     int8_t *out)
{
    const mcud_conv2d_s8_wide_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int16_t *const x = (int16_t *)(void *)(offsets + params->window.kernel_rows);
    int32_t pixels = (end_row - first_row) * params->dims.output_cols; /* not multiplied yet */
    int32_t block = mcud_wide_next(pixels, params->most_pixels);
    int32_t expanded = 0;
    int16_t *place = x; /* of the next window */
    from->places = block == 4 ? MOST : FEW;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        from->rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, from->rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            expand_window(from, left, place);
            place += block == 4 ? 2 : 2 * by->pairs;
            expanded++;
            if (expanded < block) {
                continue;
            }
            mcud_wide_multiply(by, x, block, out);
            out += block * params->dims.output_channels;
            pixels -= block;
            block = mcud_wide_next(pixels, params->most_pixels);
            expanded = 0;
            place = x;
            from->places = block == 4 ? MOST : FEW;
        }
    }
}

void mcud_conv2d_s8_wide(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_wide_params *params = op->params;
    const int32_t group_words =
        (params->group_outputs + 1) / 2 * (2 + 2 * MCUD_FACTORS + 4 * params->patch_groups);
    int8_t *const out = mcud_row(op->out, first_row);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    mcud_wide_s8 by = {
        .zero_point = params->quant.zero_point,
        .pitch = params->dims.output_channels,
        .channels = params->group_outputs,
        .pairs = 2 * params->patch_groups,
        .step = 8 * params->patch_groups,
        .records = params->packed_weights,
    };
    window from = {
        .params = params,
        .memory = op->in[0]->memory,
        .offsets = offsets,
        .last_left = params->row_runs > 1 ? -1 : params->dims.input_cols - params->window.kernel_cols,
        .run = (int8_t *)(offsets + params->window.kernel_rows + 2 * params->most_pixels * params->patch_groups),
    };
    for (int32_t group = 0; group < params->groups; group++) {
        convolve(op, &by, &from, first_row, end_row, out + group * params->group_outputs);
        by.records += group_words;
        from.memory += params->group_inputs;
    }
    const int32_t elements = (end_row - first_row) * params->dims.output_cols * params->dims.output_channels;
    mcud_clip_s8(out, elements, params->act.min, params->act.max);
}
