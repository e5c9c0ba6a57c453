#include "dwconv2d_s8.h"

#include "mcud_dot_s8.h"
#include "mcud_taps_s8.h"

/* Computes the last one to three channels; reads no bytes after them. */
static void last_channels(const mcud_dwconv2d_s8_params *params, const int8_t *const *taps, int32_t at,
                          const int32_t *record, const mcud_finish_s8 *finish, int8_t *out)
{
    const int32_t count = params->window.kernel_rows * params->window.kernel_cols;
    const int8_t *w = (const int8_t *)(record + 4);
    for (int32_t i = 0; i < params->dims.channels % 4; i++) {
        int32_t sum = record[i];
        int32_t t = 0;
        for (; t + 1 < count; t += 2) {
            const int8_t *pair = w + 4 * t + i / 2 * 4 + i % 2;
            sum += taps[t][at + i] * pair[0] + taps[t + 1][at + i] * pair[2];
        }
        if (t < count) {
            sum += taps[t][at + i] * w[4 * t + i];
        }
        out[i] = MCUD_RESULT_S8(sum, &record[4 + count + i], 4, finish);
    }
}

/* Computes all channels of `count` pixels of a row, whose windows have the same taps inside the input; `taps` are those
 * of the first pixel. */
static void pixels(const mcud_dwconv2d_s8_params *params, const int8_t *const *taps, int32_t count, int8_t *y)
{
    const uint32_t tap_count = (uint32_t)(params->window.kernel_rows * params->window.kernel_cols);
    const int8_t *const *const ends[2] = {taps + (tap_count / 2 & 3) * 2, taps + tap_count / 2 * 2};
    const int8_t *const odd = tap_count % 2 != 0 ? taps[tap_count - 1] : NULL;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t in_fours = params->dims.channels & ~3;
    const int32_t step = params->window.stride_cols * params->dims.channels;
    for (int32_t first = 0; count > 0; count--, first += step) {
        const int32_t *record = params->packed_weights;
        int32_t at = first;
        for (; at < first + in_fours; at += 4, y += 4) {
            record = mcud_record_taps(taps, ends, odd, at, record, &finish, y);
        }
        if (in_fours < params->dims.channels) {
            last_channels(params, taps, at, record, &finish, y);
            y += params->dims.channels - in_fours;
        }
    }
}

/* The number of columns from `col` on whose windows are all inside the input; else 1. */
static int32_t alike(const mcud_dwconv2d_s8_params *params, mcud_taps rows, int32_t col)
{
    const int32_t left = col * params->window.stride_cols - params->window.pad_left;
    const int32_t free =
        params->dims.input_cols - 1 - (params->window.kernel_cols - 1) * params->window.dilation_cols - left;
    if (rows.end - rows.first < params->window.kernel_rows || left < 0 || free < 0) {
        return 1;
    }
    const int32_t inside = free / params->window.stride_cols + 1;
    return inside < params->dims.output_cols - col ? inside : params->dims.output_cols - col;
}

void mcud_dwconv2d_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    const int8_t **taps = mcud_pointers(offsets + params->window.kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        for (int32_t col = 0; col < params->dims.output_cols;) {
            const int32_t left = col * params->window.stride_cols - params->window.pad_left;
            const int32_t count = alike(params, place.rows, col);
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * params->dims.channels;
            mcud_find_taps(&params->window, params->dims.channels, params->padding, &place, taps);
            pixels(params, taps, count, y);
            y += count * params->dims.channels;
            col += count;
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
