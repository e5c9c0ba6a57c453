/* Products of windows and weights that training changes, float32: the common part of trained convolutions. */
#ifndef MCUD_TRAINED_F32_H
#define MCUD_TRAINED_F32_H

#include "mcud_dot_f32.h"
#include "mcud_lines_f32.h"
#include "mcud_unpacked_f32.h"

/* Pixels of the output whose windows have the same taps inside the input. */
typedef struct {
    mcud_act_f32 act;
    int32_t outputs;
    const float *weights; /* of the first tap inside */
    const float *bias;
    const uint8_t *memory;   /* of the input, plus the bytes from the start of a row to the first tap */
    const uint32_t *offsets; /* of the rows inside */
    int32_t rows;
    int32_t runs;   /* of taps, in each row */
    int32_t values; /* in a run */
    int32_t apart;  /* values from a run to the next one */
    int32_t w_row;  /* weights of a row */
    mcud_pitches_f32 pitches;
} mcud_window_pixels_f32;

/* Adds the products of 1 or 2 pixels and `lines` (1 or 4) output channels to the sums; w: weights of the first tap. */
static inline void mcud_add_windows_f32(const mcud_window_pixels_f32 *from, const float *w, int32_t pixels,
                                        int32_t lines, float *sums)
{
    const int32_t w_gap = from->w_row - from->runs * from->values;
    for (int32_t r = 0; r < from->rows; r++, w += w_gap) {
        const void *row = from->memory + from->offsets[r];
        const float *x = row;
        for (int32_t run = 0; run < from->runs; run++, x += from->apart, w += from->values) {
            if (pixels == 2) {
                mcud_add_unpacked_2x4_f32(x, w, &from->pitches, from->values, sums);
            } else if (lines == 4) {
                mcud_add_unpacked_1x4_f32(x, w, from->pitches.lines, from->values, sums);
            } else {
                *sums = mcud_add_line_f32(x, w, from->values, *sums);
            }
        }
    }
}

/* Computes the output channels of 1 or 2 pixels by fours, without a rest of one to three channels. */
static inline void mcud_four_channels_each_f32(const mcud_window_pixels_f32 *from, int32_t pixels, float *out)
{
    const float *w = from->weights;
    for (int32_t k = 0; k + 4 <= from->outputs; k += 4, w += 4 * from->pitches.lines) {
        float sums[8];
        mcud_begin_f32(from->bias + k, pixels, sums);
        mcud_add_windows_f32(from, w, pixels, 4, sums);
        mcud_clamp_4_f32(sums, from->act.min, from->act.max, out + k);
        if (pixels == 2) {
            mcud_clamp_4_f32(sums + 4, from->act.min, from->act.max, out + from->outputs + k);
        }
    }
}

/* Computes the rest of one to three output channels of a pixel. */
static inline void mcud_last_channels_f32(const mcud_window_pixels_f32 *from, float *out)
{
    for (int32_t k = from->outputs & ~3; k < from->outputs; k++) {
        float sum = from->bias[k];
        mcud_add_windows_f32(from, from->weights + k * from->pitches.lines, 1, 1, &sum);
        out[k] = mcud_clamp_f32(sum, from->act.min, from->act.max);
    }
}

static inline void mcud_multiply_windows_f32(mcud_window_pixels_f32 *from, int32_t count, float *out)
{
    while (count > 0) {
        const int32_t pixels = count < 2 ? 1 : 2;
        mcud_four_channels_each_f32(from, pixels, out);
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            mcud_last_channels_f32(from, out);
            from->memory += from->pitches.pixels * (int32_t)sizeof *out;
            out += from->outputs;
        }
        count -= pixels;
    }
}

#endif
