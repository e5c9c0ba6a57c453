#include "conv2d_s16.h"

#include <stdbool.h>

#include "mcud_dot_s16.h"
#include "mcud_window.h"

/* Computes the channels of one group of a pixel, whose window is x[patch_groups][4]. Returns the record after
 * theirs. */
static const int32_t *convolve_narrow(const mcud_conv2d_s16_params *params, const int16_t *x, const int32_t *record,
                                      int16_t *y)
{
    const mcud_wide_quant quant = params->quant;
    const mcud_act_s16 act = params->act;
    for (int32_t left = params->group_outputs; left > 0; left -= 4, y += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = mcud_dot_fours_s16(x, params->patch_groups, record + 4, sums);
        mcud_finish_s16(sums, record, left, &quant, &act, y);
        record += 8;
    }
    return record;
}

/* The same with sums of 64 bits, made of partial sums that fit 32 bits. */
static const int32_t *convolve_wide(const mcud_conv2d_s16_params *params, const int16_t *x, const int32_t *record,
                                    int16_t *y)
{
    for (int32_t left = params->group_outputs; left > 0; left -= 4, y += 4) {
        int64_t totals[4];
        for (int32_t i = 0; i < 4; i++) {
            totals[i] = (int64_t)record[4 + i] * ((int64_t)1 << 32) + (uint32_t)record[i];
        }
        record += 8;
        const int16_t *values = x;
        for (int32_t groups = params->patch_groups; groups > 0; groups -= params->most_groups) {
            const int32_t next = groups < params->most_groups ? groups : params->most_groups;
            int32_t sums[4] = {0, 0, 0, 0};
            record = mcud_dot_fours_s16(values, next, record, sums);
            values += 4 * next;
            for (int32_t i = 0; i < 4; i++) {
                totals[i] += sums[i];
            }
        }
        mcud_finish_wide_s16(totals, record, left, &params->quant, &params->act, y);
        record += 8;
    }
    return record;
}

static const int32_t *convolve(const mcud_conv2d_s16_params *params, const int16_t *x, const int32_t *record, int16_t *y)
{
    return params->wide ? convolve_wide(params, x, record, y) : convolve_narrow(params, x, record, y);
}

void mcud_conv2d_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s16_params *params = op->params;
    const mcud_window *window = &params->window;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int16_t *patch = (int16_t *)(void *)(offsets + window->kernel_rows);
    int16_t *y = mcud_row(op->out, first_row);
    const int32_t value_bytes = (int32_t)sizeof(int16_t);
    const int32_t pixel_bytes = params->dims.input_channels * value_bytes;
    const int32_t group_bytes = params->group_inputs * value_bytes;
    const int32_t values = window->kernel_rows * window->kernel_cols * params->group_inputs;
    mcud_patch_source source = {
        .offsets = offsets,
        .kernel_rows = window->kernel_rows,
        .kernel_cols = window->kernel_cols,
        .tap_bytes = group_bytes,
        .tap_pitch = window->dilation_cols * pixel_bytes,
    };
    for (int32_t i = values; i < 4 * params->patch_groups; i++) {
        patch[i] = 0;
    }
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        const int32_t bottom = top + window->kernel_rows;
        source.rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, source.rows, offsets);
        const bool adjacent = params->piece && top >= 0 && bottom <= params->dims.input_rows &&
                              mcud_run_end(op->in[0], top, bottom) == bottom;
        int32_t left = -window->pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += window->stride_cols) {
            const mcud_taps cols = mcud_col_taps(window, left, params->dims.input_cols);
            if (adjacent && cols.first == 0 && cols.end == window->kernel_cols) {
                const void *x = op->in[0]->memory + offsets[0] + left * pixel_bytes;
                convolve(params, x, params->packed_weights, y);
                y += params->dims.output_channels;
                continue;
            }
            const int32_t first_byte = (left + cols.first * window->dilation_cols) * pixel_bytes;
            const int32_t *record = params->packed_weights;
            source.memory = op->in[0]->memory;
            for (int32_t group = 0; group < params->groups; group++) {
                mcud_gather_window(&source, cols, first_byte, (uint8_t *)patch);
                record = convolve(params, patch, record, y);
                source.memory += group_bytes;
                y += params->group_outputs;
            }
        }
    }
}
