/* Depthwise convolution, float32, of weights and biases at any address. */
#ifndef MCUD_DEPTHWISE_F32_H
#define MCUD_DEPTHWISE_F32_H

#include "mcud_dot_f32.h"
#include "mcud_window.h"

typedef struct {
    const float *weights; /* [kernel_rows][kernel_cols][output_channels] */
    const float *bias;    /* [output_channels] */
    const mcud_conv_dims *dims;
    const mcud_window *window;
    const mcud_act_f32 *act;
    int32_t multiplier; /* output channels of each input channel */
} mcud_depthwise_f32;

/* Returns `sum` plus the products of one channel of a window. */
static inline float mcud_depthwise_channel_f32(const mcud_window_taps_f32 *taps, int32_t input_channel, const float *w,
                                               float sum)
{
    const int32_t x_pitch = taps->x_pitch;
    const int32_t w_pitch = taps->w_pitch;
    const int32_t w_gap = taps->w_row_pitch - taps->count * w_pitch;
    for (int32_t r = 0; r < taps->rows; r++, w += w_gap) {
        const void *row = taps->memory + taps->offsets[r];
        const float *x = (const float *)row + input_channel;
        for (int32_t s = 0; s < taps->count; s++) {
            sum = mcud_mac_f32(*x, *w, sum);
            x += x_pitch;
            w += w_pitch;
        }
    }
    return sum;
}

/* Computes a pixel: with multiplier 1 eight channels at a time, and the last ones singly. */
static inline void mcud_depthwise_pixel_f32(const mcud_depthwise_f32 *of, const mcud_window_place *place, float *out)
{
    const float low = of->act->min;
    const float high = of->act->max;
    const int32_t inputs = of->dims->input_channels;
    const int32_t outputs = of->dims->output_channels;
    const int32_t w_row_pitch = of->window->kernel_cols * outputs;
    const mcud_window_taps_f32 taps = {
        .memory = place->memory + place->first_byte,
        .offsets = place->offsets + place->rows.first,
        .rows = place->rows.end - place->rows.first,
        .count = place->cols.end - place->cols.first,
        .x_pitch = of->window->dilation_cols * inputs,
        .w_pitch = outputs,
        .w_row_pitch = w_row_pitch,
    };
    const float *w = of->weights + place->rows.first * w_row_pitch + place->cols.first * outputs;
    int32_t c = 0;
    for (; of->multiplier == 1 && c + 8 <= inputs; c += 8) {
        float sums[8];
        memcpy(sums, of->bias + c, sizeof sums);
        mcud_add_window_8_f32(&taps, c, w + c, sums);
        mcud_clamp_4_f32(sums, low, high, out + c);
        mcud_clamp_4_f32(sums + 4, low, high, out + c + 4);
    }
    for (int32_t k = c; c < inputs; c++) {
        for (int32_t m = 0; m < of->multiplier; m++, k++) {
            const float sum = mcud_depthwise_channel_f32(&taps, c, w + k, of->bias[k]);
            out[k] = mcud_clamp_f32(sum, low, high);
        }
    }
}

/* Computes rows of the output; scratch is uint32_t [kernel_rows]. */
static inline void mcud_depthwise_rows_f32(const mcud_op *op, const mcud_depthwise_f32 *of, int32_t first_row,
                                           int32_t end_row)
{
    const int32_t pixel_bytes = of->dims->input_channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * of->window->stride_rows - of->window->pad_top;
        place.rows = mcud_row_taps(of->window, top, of->dims->input_rows);
        mcud_window_rows(op->in[0], top, of->window->dilation_rows, place.rows, offsets);
        int32_t left = -of->window->pad_left;
        for (int32_t col = 0; col < of->dims->output_cols; col++, left += of->window->stride_cols) {
            place.cols = mcud_col_taps(of->window, left, of->dims->input_cols);
            place.first_byte = (left + place.cols.first * of->window->dilation_cols) * pixel_bytes;
            mcud_depthwise_pixel_f32(of, &place, out);
            out += of->dims->output_channels;
        }
    }
}

#endif
