/* Sums of products of float32 pixels and packed int8 weights, clamped: mcud_dot_f32.h with weights in a quarter of
 * its bytes. */
#ifndef MCUD_DOT_S8W_H
#define MCUD_DOT_S8W_H

#include "mcud_dot_f32.h"
#include "mcud_simd_s8w.h"

/* The output channels of a multiplication, in blocks of four. */
typedef struct {
    const int8_t *weights; /* [blocks][depth][4] */
    const float *scale;    /* [blocks][4], of the weights */
    const float *bias;     /* [blocks][4] */
    int32_t channels;
    int32_t depth;
    mcud_act_f32 act;
} mcud_channels_s8w;

/* Multiplies x[depth] to y[channels]. */
static inline void mcud_pixel_s8w(const mcud_channels_s8w *to, const float *x, float *y)
{
    const int8_t *w = to->weights;
    int32_t k = 0;
    for (; k + 8 <= to->channels; k += 8, w += 8 * to->depth) {
        float sums[8];
        memcpy(sums, to->bias + k, sizeof sums);
        mcud_add_1x8_s8w(x, w, to->scale + k, to->depth, sums);
        mcud_clamp_4_f32(sums, to->act.min, to->act.max, y + k);
        mcud_clamp_4_f32(sums + 4, to->act.min, to->act.max, y + k + 4);
    }
    for (; k < to->channels; k += 4, w += 4 * to->depth) {
        float sums[4];
        mcud_begin_f32(to->bias + k, 1, sums);
        mcud_add_1x4_s8w(x, w, to->scale + k, to->depth, sums);
        mcud_finish_f32(&to->act, sums, to->channels - k, y + k);
    }
}

/* Four pixels, `step` values apart, to results `channels` apart */
static inline void mcud_pixels_s8w(const mcud_channels_s8w *to, const float *x, int32_t step, float *y)
{
    const int8_t *w = to->weights;
    for (int32_t k = 0; k < to->channels; k += 4, w += 4 * to->depth) {
        float sums[16];
        mcud_begin_f32(to->bias + k, 4, sums);
        mcud_add_4x4_s8w(x, step, w, to->scale + k, to->depth, sums);
        for (int32_t pixel = 0; pixel < 4; pixel++) {
            mcud_finish_f32(&to->act, sums + 4 * pixel, to->channels - k, y + pixel * to->channels + k);
        }
    }
}

#endif
