#include "maxpool_f32.h"

#include <math.h>

#include "mcud_window.h"

/* Computes channels [channel, channel + 4) of a pixel. */
static void four_channels(const mcud_maxpool_f32_params *params, const mcud_window_place *place,
                          int32_t channel, float *out)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    float a = -INFINITY;
    float b = -INFINITY;
    float c = -INFINITY;
    float d = -INFINITY;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            a = x[0] > a ? x[0] : a;
            b = x[1] > b ? x[1] : b;
            c = x[2] > c ? x[2] : c;
            d = x[3] > d ? x[3] : d;
        }
    }
    out[channel] = a;
    out[channel + 1] = b;
    out[channel + 2] = c;
    out[channel + 3] = d;
}

static void one_channel(const mcud_maxpool_f32_params *params, const mcud_window_place *place,
                        int32_t channel, float *out)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    float value = -INFINITY;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            value = *x > value ? *x : value;
        }
    }
    out[channel] = value;
}

static void one_pixel(const mcud_maxpool_f32_params *params, const mcud_window_place *place, float *out)
{
    int32_t c = 0;
    for (; c + 4 <= params->dims.channels; c += 4) {
        four_channels(params, place, c, out);
    }
    for (; c < params->dims.channels; c++) {
        one_channel(params, place, c, out);
    }
}

void mcud_maxpool_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_f32_params *params = op->params;
    const int32_t pixel_bytes = params->dims.channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * pixel_bytes;
            one_pixel(params, &place, out);
            out += params->dims.channels;
        }
    }
}
