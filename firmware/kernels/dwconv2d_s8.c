#include "dwconv2d_s8.h"

#include "mcud_quant.h"
#include "mcud_window.h"

/* A tap of the window: where its values are from the first tap inside the input, and its weights. */
typedef struct {
    uint32_t x;
    uint32_t w;
} tap;

/* The taps of the pixels to come: those inside the input, then those in the padding. */
typedef struct {
    tap *taps;
    tap *inside_end;
    tap *end;
} tap_list;

static void list_taps(const mcud_dwconv2d_s8_params *params, const uint32_t *offsets, mcud_taps rows,
                      mcud_taps cols, tap_list *list)
{
    const uint32_t pitch = (uint32_t)(params->dilation_cols * params->input_channels);
    tap *inside = list->taps;
    tap *padded = list->end;
    uint32_t w = 0;
    for (int32_t r = 0; r < params->kernel_rows; r++) {
        uint32_t x = r >= rows.first && r < rows.end ? offsets[r] : 0;
        for (int32_t s = 0; s < params->kernel_cols; s++, w += (uint32_t)params->output_channels) {
            if (r < rows.first || r >= rows.end || s < cols.first || s >= cols.end) {
                padded--;
                padded->w = w;
                continue;
            }
            inside->x = x;
            inside->w = w;
            inside++;
            x += pitch;
        }
    }
    list->inside_end = inside;
}

static inline int8_t requantize(const mcud_dwconv2d_s8_params *params, int32_t channel, int32_t sum)
{
    const int32_t scaled = mcud_scale(sum, params->multipliers[channel], params->shift);
    return (int8_t)mcud_clamp(scaled + params->output_zero_point, params->low, params->high);
}

/* Channels [channel, channel + 4) of a pixel, for multiplier 1; `x` is its first tap inside the input. */
static inline void four_channels(const mcud_dwconv2d_s8_params *params, const tap_list *list,
                                 const uint8_t *x, int32_t channel, int8_t *out)
{
    const int8_t *weights = params->weights + channel;
    const int32_t *bias = params->bias + channel;
    int32_t a = bias[0];
    int32_t b = bias[1];
    int32_t c = bias[2];
    int32_t d = bias[3];
    const tap *at = list->taps;
    x += channel;
    for (; at < list->inside_end; at++) {
        const int8_t *values = (const int8_t *)x + at->x;
        const int8_t *w = weights + at->w;
        a += values[0] * w[0];
        b += values[1] * w[1];
        c += values[2] * w[2];
        d += values[3] * w[3];
    }
    for (; at < list->end; at++) {
        const int8_t *w = weights + at->w;
        a += params->input_zero_point * w[0];
        b += params->input_zero_point * w[1];
        c += params->input_zero_point * w[2];
        d += params->input_zero_point * w[3];
    }
    const int8_t first = requantize(params, channel, a);
    const int8_t second = requantize(params, channel + 1, b);
    const int8_t third = requantize(params, channel + 2, c);
    const int8_t fourth = requantize(params, channel + 3, d);
    out[channel] = first;
    out[channel + 1] = second;
    out[channel + 2] = third;
    out[channel + 3] = fourth;
}

/* One channel of a pixel, for any multiplier. */
static inline void one_channel(const mcud_dwconv2d_s8_params *params, const tap_list *list, const uint8_t *x,
                               int32_t channel, int8_t *out)
{
    const int8_t *weights = params->weights + channel;
    int32_t sum = params->bias[channel];
    const tap *at = list->taps;
    for (; at < list->inside_end; at++) {
        sum += *((const int8_t *)x + at->x) * weights[at->w];
    }
    for (; at < list->end; at++) {
        sum += params->input_zero_point * weights[at->w];
    }
    out[channel] = requantize(params, channel, sum);
}

static void one_pixel(const mcud_dwconv2d_s8_params *params, const tap_list *list, const uint8_t *x,
                      int8_t *out)
{
    int32_t c = 0;
    if (params->multiplier == 1) {
        for (; c + 4 <= params->input_channels; c += 4) {
            four_channels(params, list, x, c, out);
        }
    }
    int32_t k = c * params->multiplier;
    for (; c < params->input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            one_channel(params, list, x + c, k, out);
        }
    }
}

void mcud_dwconv2d_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    tap *const taps = (tap *)(void *)(offsets + params->kernel_rows);
    tap_list list = {taps, taps, taps + params->kernel_rows * params->kernel_cols};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        const mcud_taps rows =
            mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, rows, offsets);
        int32_t left = -params->pad_left;
        mcud_taps listed = {-1, -1};
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            const mcud_taps cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            if (cols.first != listed.first || cols.end != listed.end) {
                list_taps(params, offsets, rows, cols, &list);
                listed = cols;
            }
            const int32_t first_byte = (left + cols.first * params->dilation_cols) * params->input_channels;
            one_pixel(params, &list, op->in[0]->memory + first_byte, out);
            out += params->output_channels;
        }
    }
}
