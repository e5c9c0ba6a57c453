#include "dwconv2d_s8_twice.h"

#include "mcud_finish_twice.h"
#include "mcud_simd.h"
#include "mcud_taps_s8.h"

/* The sums of up to four channels: bytes after them must not be read. */
static void sum_few(const int8_t *const *taps, int32_t taps_count, int32_t channels, const int32_t *record,
                    int32_t sums[4])
{
    const int8_t *w = (const int8_t *)record;
    for (int32_t i = 0; i < channels; i++) {
        int32_t t = 0;
        for (; t + 1 < taps_count; t += 2) {
            const int8_t *pair = w + 4 * t + i / 2 * 4 + i % 2;
            sums[i] += taps[t][i] * pair[0] + taps[t + 1][i] * pair[2];
        }
        if (t < taps_count) {
            sums[i] += taps[t][i] * w[4 * t + i];
        }
    }
}

/* All channels of one pixel; `taps` are those of its first channel, and are moved on for the last few channels. */
static void convolve(const mcud_dwconv2d_s8_twice_params *params, const int8_t **taps, int8_t *y)
{
    const mcud_twice_s8 finish = {params->quant.zero_point, params->act.min, params->act.max};
    const int32_t count = params->window.kernel_rows * params->window.kernel_cols;
    const int32_t *record = params->packed_weights;
    const int8_t *exponents = params->exponents;
    const int32_t in_fours = params->dims.channels & ~3;
    int32_t at = 0;
    for (; at < in_fours; at += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        mcud_sum_taps(taps, count, at, record + 4, sums);
        record += 4 + count;
        mcud_finish_twice(sums, record, exponents + at, 4, &finish, y + at);
        record += 4;
    }
    if (at < params->dims.channels) {
        for (int32_t t = 0; t < count; t++) {
            taps[t] += at;
        }
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        sum_few(taps, count, params->dims.channels - at, record + 4, sums);
        record += 4 + count;
        mcud_finish_twice(sums, record, exponents + at, params->dims.channels - at, &finish, y + at);
    }
}

void mcud_dwconv2d_s8_twice(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_twice_params *params = op->params;
    const mcud_window *window = &params->window;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    const int8_t **taps = mcud_pointers(offsets + window->kernel_rows);
    int8_t *y = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        place.rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, place.rows, offsets);
        int32_t left = -window->pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += window->stride_cols) {
            place.cols = mcud_col_taps(window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * window->dilation_cols) * params->dims.channels;
            mcud_find_taps(window, params->dims.channels, params->padding, &place, taps);
            convolve(params, taps, y);
            y += params->dims.channels;
        }
    }
}
