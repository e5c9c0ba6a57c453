#include "avgpool_s8.h"

#include "mcud_quant.h"
#include "mcud_window.h"

/* What the taps of one output pixel are read from. */
typedef struct {
    const uint8_t *memory;
    const uint32_t *offsets; /* of the input rows */
    mcud_taps rows;
    mcud_taps cols;
    int32_t first_byte; /* of tap cols.first in an input row */
    int32_t multiplier; /* for this window's divisor */
    int32_t offset;     /* minus the sum of the zero points under the window */
} window_place;

static int8_t mean(const mcud_avgpool_s8_params *params, const window_place *place, int32_t sum)
{
    const int32_t scaled = mcud_scale_even(sum + place->offset, place->multiplier, params->shift);
    return (int8_t)mcud_clamp(scaled + params->output_zero_point, INT8_MIN, INT8_MAX);
}

/* Channels [channel, channel + 4) of a pixel. */
static void four_channels(const mcud_avgpool_s8_params *params, const window_place *place, int32_t channel,
                          int8_t *out)
{
    const int32_t pitch = params->dilation_cols * params->channels;
    int32_t a = 0;
    int32_t b = 0;
    int32_t c = 0;
    int32_t d = 0;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            a += x[0];
            b += x[1];
            c += x[2];
            d += x[3];
        }
    }
    out[channel] = mean(params, place, a);
    out[channel + 1] = mean(params, place, b);
    out[channel + 2] = mean(params, place, c);
    out[channel + 3] = mean(params, place, d);
}

static void one_channel(const mcud_avgpool_s8_params *params, const window_place *place, int32_t channel,
                        int8_t *out)
{
    const int32_t pitch = params->dilation_cols * params->channels;
    int32_t value = 0;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
            value += *x;
        }
    }
    out[channel] = mean(params, place, value);
}

static void one_pixel(const mcud_avgpool_s8_params *params, const window_place *place, int8_t *out)
{
    int32_t c = 0;
    for (; c + 4 <= params->channels; c += 4) {
        four_channels(params, place, c, out);
    }
    for (; c < params->channels; c++) {
        one_channel(params, place, c, out);
    }
}

void mcud_avgpool_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_s8_params *params = op->params;
    const int32_t pixel_bytes = params->channels;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        place.rows = mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, place.rows, offsets);
        const mcud_taps counted_rows = mcud_taps_inside(top, params->dilation_rows, params->kernel_rows,
                                                        params->counted_top, params->counted_bottom);
        const int32_t row_class = counted_rows.end - counted_rows.first - params->least_rows;
        const int32_t *multipliers = params->multipliers + row_class * params->factor_cols;
        int32_t left = -params->pad_left;
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            place.cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            place.first_byte = (left + place.cols.first * params->dilation_cols) * pixel_bytes;
            const mcud_taps counted = mcud_taps_inside(left, params->dilation_cols, params->kernel_cols,
                                                       params->counted_left, params->counted_right);
            const int32_t taps =
                (place.rows.end - place.rows.first) * (place.cols.end - place.cols.first);
            place.offset = -taps * params->input_zero_point;
            place.multiplier = multipliers[counted.end - counted.first - params->least_cols];
            one_pixel(params, &place, out);
            out += params->channels;
        }
    }
}
