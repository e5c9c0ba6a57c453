#include "dwconv2d_f32.h"

#include "mcud_dot_f32.h"
#include "mcud_window.h"

/* One channel of a pixel, for any multiplier. */
static void one_channel(const mcud_dwconv2d_f32_params *params, const mcud_window_place *place,
                        int32_t input_channel, int32_t channel, float *out)
{
    const int32_t pitch = params->dims.output_channels;
    const int32_t x_pitch = params->window.dilation_cols * params->dims.input_channels;
    float sum = params->bias[channel];
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + input_channel;
        const float *w = params->weights + (r * params->window.kernel_cols + place->cols.first) * pitch + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++) {
            sum = mcud_fused_f32(*x, *w, sum);
            x += x_pitch;
            w += pitch;
        }
    }
    out[channel] = mcud_clamp_f32(sum, params->act.min, params->act.max);
}

/* The first `channels` channels of a pixel, a multiple of eight, for multiplier 1. */
static void by_eight(const mcud_dwconv2d_f32_params *params, const mcud_window_place *place, int32_t channels,
                     float *out)
{
    const int32_t w_row_pitch = params->window.kernel_cols * params->dims.output_channels;
    const mcud_window_taps_f32 taps = {
        .memory = place->memory + place->first_byte,
        .offsets = place->offsets + place->rows.first,
        .rows = place->rows.end - place->rows.first,
        .count = place->cols.end - place->cols.first,
        .x_pitch = params->window.dilation_cols * params->dims.input_channels,
        .w_pitch = params->dims.output_channels,
        .w_row_pitch = w_row_pitch,
    };
    const float *w =
        params->weights + place->rows.first * w_row_pitch + place->cols.first * params->dims.output_channels;
    for (int32_t c = 0; c < channels; c += 8) {
        float sums[8];
        memcpy(sums, params->bias + c, sizeof sums);
        mcud_add_window_8_f32(&taps, c, w + c, sums);
        mcud_clamp_4_f32(sums, params->act.min, params->act.max, out + c);
        mcud_clamp_4_f32(sums + 4, params->act.min, params->act.max, out + c + 4);
    }
}

static void one_pixel(const mcud_dwconv2d_f32_params *params, const mcud_window_place *place, float *out)
{
    int32_t c = params->multiplier == 1 ? params->dims.input_channels & ~7 : 0;
    if (c > 0) {
        by_eight(params, place, c, out);
    }
    int32_t k = c * params->multiplier;
    for (; c < params->dims.input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            one_channel(params, place, c, k, out);
        }
    }
}

void mcud_dwconv2d_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
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
            out += params->dims.output_channels;
        }
    }
}
