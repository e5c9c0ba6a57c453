/* Sums of products of float32 pixels and packed float32 weights, clamped: the core of the convolutions. */
#ifndef MCUD_DOT_F32_H
#define MCUD_DOT_F32_H

#include <stdint.h>
#include <string.h>

#include "mcud_clamp_f32.h"
#include "mcud_params.h"
#include "mcud_simd_f32.h"

/* The output channels of a product: weights and biases in blocks of four channels, and the clip. */
typedef struct {
    const float *weights; /* [blocks][depth][4] */
    const float *bias;    /* [blocks][4] */
    int32_t channels;
    int32_t depth;
    mcud_act_f32 act;
} mcud_channels_f32;

/* The biases of one block as the first sums of `pixels` pixels. */
static inline void mcud_begin_f32(const float bias[4], int32_t pixels, float *sums)
{
    for (int32_t pixel = 0; pixel < pixels; pixel++) {
        memcpy(sums + 4 * pixel, bias, 4 * sizeof *bias);
    }
}

/* The sums of one pixel to its next four results, or to the `channels` that there are. */
static inline void mcud_finish_f32(const mcud_act_f32 *act, const float sums[4], int32_t channels, float *y)
{
    if (channels >= 4) {
        mcud_clamp_4_f32(sums, act->min, act->max, y);
        return;
    }
    for (int32_t c = 0; c < channels; c++) {
        y[c] = mcud_clamp_f32(sums[c], act->min, act->max);
    }
}

/* x[depth] -> y[channels] */
static inline void mcud_pixel_f32(const mcud_channels_f32 *to, const float *x, float *y)
{
    const float *w = to->weights;
    int32_t k = 0;
    for (; k + 8 <= to->channels; k += 8, w += 8 * to->depth) {
        float sums[8];
        memcpy(sums, to->bias + k, sizeof sums);
        mcud_add_1x8_f32(x, w, to->depth, sums);
        mcud_clamp_4_f32(sums, to->act.min, to->act.max, y + k);
        mcud_clamp_4_f32(sums + 4, to->act.min, to->act.max, y + k + 4);
    }
    for (; k < to->channels; k += 4, w += 4 * to->depth) {
        float sums[4];
        mcud_begin_f32(to->bias + k, 1, sums);
        mcud_add_1x4_f32(x, w, to->depth, sums);
        mcud_finish_f32(&to->act, sums, to->channels - k, y + k);
    }
}

/* Four pixels, `step` values apart, to results `pitch` apart */
static inline void mcud_pixels_f32(const mcud_channels_f32 *to, const float *x, int32_t step, float *y,
                                   int32_t pitch)
{
    const float *w = to->weights;
    for (int32_t k = 0; k < to->channels; k += 4, w += 4 * to->depth) {
        float sums[16];
        mcud_begin_f32(to->bias + k, 4, sums);
        mcud_add_4x4_f32(x, step, w, to->depth, sums);
        for (int32_t pixel = 0; pixel < 4; pixel++) {
            mcud_finish_f32(&to->act, sums + 4 * pixel, to->channels - k, y + pixel * pitch + k);
        }
    }
}

#endif
