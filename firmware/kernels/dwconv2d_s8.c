#include "dwconv2d_s8.h"

#include "mcud_quant.h"
#include "mcud_window.h"

/* What the taps of one output pixel are read from. */
typedef struct {
    const uint8_t *memory;
    const uint32_t *offsets; /* of the input rows */
    mcud_taps rows;
    mcud_taps cols;
    int32_t first_byte; /* of tap cols.first in an input row */
} window_place;

static int8_t requantize(const mcud_dwconv2d_s8_params *params, int32_t channel, int32_t sum)
{
    const int32_t scaled = mcud_scale(sum, params->multipliers[channel], params->shift);
    return (int8_t)mcud_clamp(scaled + params->output_zero_point, params->low, params->high);
}

/* Adds `count` taps of four neighbouring channels. */
static inline void add_taps(const int8_t *x, int32_t x_pitch, const int8_t *w, int32_t w_pitch, int32_t count,
                            int32_t sums[4])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    for (; count > 0; count--) {
        a += x[0] * w[0];
        b += x[1] * w[1];
        c += x[2] * w[2];
        d += x[3] * w[3];
        x += x_pitch;
        w += w_pitch;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Channels [channel, channel + 4) of a pixel, for multiplier 1. */
static void four_channels(const mcud_dwconv2d_s8_params *params, const window_place *place, int32_t channel,
                          int8_t *out)
{
    const int32_t pitch = params->output_channels;
    const int32_t x_pitch = params->dilation_cols * params->input_channels;
    const int8_t zero_point = (int8_t)params->input_zero_point;
    const int8_t padding[4] = {zero_point, zero_point, zero_point, zero_point};
    const int32_t left = place->cols.first;
    const int32_t inside = place->cols.end - left;
    const int32_t *bias = params->bias + channel;
    int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
    const int8_t *w = params->weights + channel;
    for (int32_t r = 0; r < params->kernel_rows; r++, w += params->kernel_cols * pitch) {
        if (r < place->rows.first || r >= place->rows.end) {
            add_taps(padding, 0, w, pitch, params->kernel_cols, sums);
            continue;
        }
        const int8_t *x = (const int8_t *)(place->memory + place->offsets[r] + place->first_byte) + channel;
        if (inside == params->kernel_cols) {
            add_taps(x, x_pitch, w, pitch, inside, sums);
            continue;
        }
        add_taps(padding, 0, w, pitch, left, sums);
        add_taps(x, x_pitch, w + left * pitch, pitch, inside, sums);
        add_taps(padding, 0, w + place->cols.end * pitch, pitch, params->kernel_cols - place->cols.end, sums);
    }
    for (int32_t i = 0; i < 4; i++) {
        out[channel + i] = requantize(params, channel + i, sums[i]);
    }
}

/* One channel of a pixel, for any multiplier. */
static void one_channel(const mcud_dwconv2d_s8_params *params, const window_place *place,
                        int32_t input_channel, int32_t channel, int8_t *out)
{
    const int32_t x_pitch = params->dilation_cols * params->input_channels;
    const int8_t *w = params->weights + channel;
    int32_t sum = params->bias[channel];
    for (int32_t r = 0; r < params->kernel_rows; r++) {
        const int8_t *x = NULL;
        if (r >= place->rows.first && r < place->rows.end) {
            x = (const int8_t *)(place->memory + place->offsets[r] + place->first_byte) + input_channel;
        }
        for (int32_t s = 0; s < params->kernel_cols; s++, w += params->output_channels) {
            if (x == NULL || s < place->cols.first || s >= place->cols.end) {
                sum += params->input_zero_point * *w;
                continue;
            }
            sum += *x * *w;
            x += x_pitch;
        }
    }
    out[channel] = requantize(params, channel, sum);
}

static void one_pixel(const mcud_dwconv2d_s8_params *params, const window_place *place, int8_t *out)
{
    int32_t c = 0;
    if (params->multiplier == 1) {
        for (; c + 4 <= params->input_channels; c += 4) {
            four_channels(params, place, c, out);
        }
    }
    int32_t k = c * params->multiplier;
    for (; c < params->input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            one_channel(params, place, c, k, out);
        }
    }
}

void mcud_dwconv2d_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        place.rows = mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, place.rows, offsets);
        int32_t left = -params->pad_left;
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            place.cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            place.first_byte = (left + place.cols.first * params->dilation_cols) * params->input_channels;
            one_pixel(params, &place, out);
            out += params->output_channels;
        }
    }
}
