#include "dwconv2d_s16.h"

#include <stdbool.h>
#include <stddef.h>

#include "mcud_dot_s16.h"
#include "mcud_window.h"


/* The sums of up to four channels; reads no values after them. */
static void sum_few(const int16_t *const *taps, int32_t count, int32_t at, int32_t channels, const int32_t *record,
                    int32_t sums[4])
{
    const int8_t *w = (const int8_t *)record;
    for (int32_t i = 0; i < channels; i++) {
        int32_t t = 0;
        for (; t + 1 < count; t += 2) {
            const int8_t *pair = w + 4 * t + i / 2 * 4 + i % 2;
            sums[i] += taps[t][at + i] * pair[0] + taps[t + 1][at + i] * pair[2];
        }
        if (t < count) {
            sums[i] += taps[t][at + i] * w[4 * t + i];
        }
    }
}

/* Computes all channels of a pixel. */
static void convolve(const mcud_dwconv2d_s16_params *params, const int16_t *const *taps, int16_t *y)
{
    const mcud_wide_quant quant = params->quant;
    const mcud_act_s16 act = params->act;
    const int32_t count = params->window.kernel_rows * params->window.kernel_cols;
    const int32_t *record = params->packed_weights;
    for (int32_t at = 0; at < params->dims.channels; at += 4) {
        const int32_t left = params->dims.channels - at;
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record += 4;
        if (left >= 4) {
            mcud_dot_taps_s16(taps, count, at, record, sums);
        } else {
            sum_few(taps, count, at, left, record, sums);
        }
        record += count;
        mcud_finish_s16(sums, record, left, &quant, &act, y + at);
        record += 8;
    }
}

/* Points `taps` to the taps of a window, in the input or in the padding. */
static void find_taps(const mcud_dwconv2d_s16_params *params, const mcud_window_place *place, const int16_t **taps)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        const bool inside = r >= place->rows.first && r < place->rows.end;
        const void *row = inside ? place->memory + place->offsets[r] + place->first_byte : NULL;
        const int16_t *x = row;
        for (int32_t s = 0; s < params->window.kernel_cols; s++) {
            *taps = params->padding;
            if (inside && s >= place->cols.first && s < place->cols.end) {
                *taps = x;
                x += pitch;
            }
            taps++;
        }
    }
}

void mcud_dwconv2d_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s16_params *params = op->params;
    const mcud_window *window = &params->window;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    const int16_t **taps = (const int16_t **)(void *)mcud_pointers(offsets + window->kernel_rows);
    int16_t *y = mcud_row(op->out, first_row);
    const int32_t pixel_bytes = params->dims.channels * (int32_t)sizeof(int16_t);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        place.rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, place.rows, offsets);
        int32_t left = -window->pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += window->stride_cols) {
            place.cols = mcud_col_taps(window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * window->dilation_cols) * pixel_bytes;
            find_taps(params, &place, taps);
            convolve(params, taps, y);
            y += params->dims.channels;
        }
    }
}
