#include "conv2d_s16_3x2.h"

#include <stdbool.h>

#include "mcud_pixels_s16.h"
#include "mcud_window.h"

/* Multiplies `pixels` pixels, which are expanded to x, with all channels. */
static void convolve(const mcud_conv2d_s16_3x2_params *params, const int16_t *x, int32_t pixels, int16_t *y)
{
    const int32_t low = params->act.min;
    const int32_t high = params->act.max;
    const int32_t ties = params->quant.ties;
    const int32_t groups = params->patch_groups;
    const int32_t channels = params->dims.output_channels;
    const int32_t *record = params->packed_weights;
    for (int32_t channel = 0; channel < channels; channel += 2) {
        int32_t sums[6] = {record[0], record[1], record[0], record[1], record[0], record[1]};
        record = mcud_sum_pixels_s16(x, groups, pixels, record + 2, sums);
        const int32_t last = channels - channel > 1;
        int16_t *out = y + channel;
        for (const int32_t *sum = sums, *end = sums + 2 * pixels; sum < end; sum += 2) {
            const int32_t first = mcud_scale_by_ties(sum[0], record[0], record[2], ties);
            const int32_t second = mcud_scale_by_ties(sum[1], record[1], record[3], ties);
            out[0] = (int16_t)mcud_clamp(first, low, high);
            if (last) {
                out[1] = (int16_t)mcud_clamp(second, low, high);
            }
            out += channels;
        }
        record += 4;
    }
}

void mcud_conv2d_s16_3x2(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s16_3x2_params *params = op->params;
    const mcud_window *window = &params->window;
    const int32_t patch_values = 4 * params->patch_groups;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int16_t *expanded = (int16_t *)(void *)(offsets + window->kernel_rows);
    int16_t *patch = expanded + 3 * patch_values;
    int16_t *y = mcud_row(op->out, first_row);
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(int16_t);
    mcud_patch_source source = {
        .memory = op->in[0]->memory,
        .offsets = offsets,
        .kernel_rows = window->kernel_rows,
        .kernel_cols = window->kernel_cols,
        .tap_bytes = pixel_bytes,
        .tap_pitch = window->dilation_cols * pixel_bytes,
    };
    for (int32_t i = window->kernel_rows * window->kernel_cols * params->dims.input_channels; i < patch_values; i++) {
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
        for (int32_t cols_left = params->dims.output_cols; cols_left > 0;) {
            const int32_t pixels = cols_left == 2 || cols_left == 4 ? 2 : 3; /* a row has at least two */
            for (int32_t p = 0; p < pixels; p++, left += window->stride_cols) {
                const mcud_taps cols = mcud_col_taps(window, left, params->dims.input_cols);
                const int32_t first_byte = (left + cols.first * window->dilation_cols) * pixel_bytes;
                const void *x = patch;
                if (adjacent && cols.first == 0 && cols.end == window->kernel_cols) {
                    x = source.memory + offsets[0] + first_byte;
                } else {
                    mcud_gather_window(&source, cols, first_byte, (uint8_t *)patch);
                }
                mcud_expand_s16(expanded + 2 * p, x, params->patch_groups, pixels);
            }
            convolve(params, expanded, pixels, y);
            y += pixels * params->dims.output_channels;
            cols_left -= pixels;
        }
    }
}
