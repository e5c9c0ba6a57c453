#include "avgpool_f32.h"

#include "mcud_window.h"

/* The source of one output pixel's taps. */
typedef struct {
    const uint8_t *memory;
    const uint32_t *offsets; /* of the input rows */
    mcud_taps rows;
    mcud_taps cols;
    int32_t first_byte; /* of tap cols.first in an input row */
    float factor; /* 1 / divisor of this window */
} window_place;

/* Computes channels [channel, channel + 4) of a pixel. */
static void four_channels(const mcud_avgpool_f32_params *params, const window_place *place, int32_t channel,
                          float *out)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    float a = 0.0f;
    float b = 0.0f;
    float c = 0.0f;
    float d = 0.0f;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            a += x[0];
            b += x[1];
            c += x[2];
            d += x[3];
        }
    }
    out[channel] = a * place->factor;
    out[channel + 1] = b * place->factor;
    out[channel + 2] = c * place->factor;
    out[channel + 3] = d * place->factor;
}

static void one_channel(const mcud_avgpool_f32_params *params, const window_place *place, int32_t channel,
                        float *out)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    float value = 0.0f;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            value += *x;
        }
    }
    out[channel] = value * place->factor;
}

static void one_pixel(const mcud_avgpool_f32_params *params, const window_place *place, float *out)
{
    int32_t c = 0;
    for (; c + 4 <= params->dims.channels; c += 4) {
        four_channels(params, place, c, out);
    }
    for (; c < params->dims.channels; c++) {
        one_channel(params, place, c, out);
    }
}

void mcud_avgpool_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_f32_params *params = op->params;
    const int32_t pixel_bytes = params->dims.channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        const mcud_taps counted_rows =
                mcud_taps_inside(top, params->window.dilation_rows, params->window.kernel_rows,
                                 params->counted_top, params->counted_bottom);
        const int32_t row_class = counted_rows.end - counted_rows.first - params->least_rows;
        const float *factors = params->factors + row_class * params->factor_cols;
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * pixel_bytes;
            const mcud_taps counted =
                mcud_taps_inside(left, params->window.dilation_cols, params->window.kernel_cols,
                                 params->counted_left, params->counted_right);
            place.factor = factors[counted.end - counted.first - params->least_cols];
            one_pixel(params, &place, out);
            out += params->dims.channels;
        }
    }
}
