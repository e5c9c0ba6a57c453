#include "maxpool_f32_taps.h"

#include <math.h>

#include "mcud_window.h"

/* The tap of the first largest value of a channel. */
static int32_t largest(const mcud_maxpool_f32_taps_params *params, const mcud_window_place *place, int32_t channel)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    const int32_t kernel_cols = params->window.kernel_cols;
    float value = -INFINITY;
    int32_t tap = place->rows.first * kernel_cols + place->cols.first;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            if (*x > value) {
                value = *x;
                tap = r * kernel_cols + s;
            }
        }
    }
    return tap;
}

void mcud_maxpool_f32_taps(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_f32_taps_params *params = op->params;
    const int32_t pixel_bytes = params->dims.channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        uint8_t *out = mcud_row(op->out, row);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * pixel_bytes;
            for (int32_t channel = 0; channel < params->dims.channels; channel++) {
                *out++ = (uint8_t)largest(params, &place, channel);
            }
        }
    }
}
