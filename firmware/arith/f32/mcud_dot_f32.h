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
} mcud_dot_f32_params;

typedef mcud_dot_f32_params mcud_channels_f32;

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

/* Four pixels, `step` values apart, to results `pitch` apart */
static inline void mcud_pixels_f32(const mcud_channels_f32 *by, const float *x, int32_t step, float *y,
                                   int32_t pitch)
{
    const mcud_channels_f32 to = *by; /* a copy, since the compiler must expect assembler to change *by */
    const float *w = to.weights;
    for (int32_t k = 0; k < to.channels; k += 4, w += 4 * to.depth) {
        float sums[16];
        mcud_begin_f32(to.bias + k, 4, sums);
        mcud_add_4x4_f32(x, step, w, to.depth, sums);
        for (int32_t pixel = 0; pixel < 4; pixel++) {
            mcud_finish_f32(&to.act, sums + 4 * pixel, to.channels - k, y + pixel * pitch + k);
        }
    }
}

#endif
