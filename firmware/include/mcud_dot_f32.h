/* Dot products of float32 patches with float32 weights, clamped: the core of the convolutions.
 * Every output is its bias, then its products in order of depth, whatever the block: a cut changes no bit. */
#ifndef MCUD_DOT_F32_H
#define MCUD_DOT_F32_H

#include <stdint.h>

#include "mcud_clamp_f32.h"

/* The output channels that a pixel is multiplied to. */
typedef struct {
    const float *weights; /* [channels][depth] */
    const float *bias;    /* [channels] */
    int32_t channels;
    int32_t depth;
    float low;
    float high;
} mcud_channels_f32;

/* One pixel, one channel: `sum` plus the products. */
static inline float mcud_dot_f32(const float *x, const float *w, int32_t depth, float sum)
{
    for (int32_t i = 0; i < depth; i++) {
        sum += x[i] * w[i];
    }
    return sum;
}

/* Adds the products of one pixel and four channels, whose weights lie `pitch` apart. */
static inline void mcud_dot4_f32(const float *x, const float *w, int32_t pitch, int32_t depth, float sums[4])
{
    const float *w1 = w + pitch;
    const float *w2 = w1 + pitch;
    const float *w3 = w2 + pitch;
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (int32_t i = 0; i < depth; i++) {
        const float value = x[i];
        a += value * w[i];
        b += value * w1[i];
        c += value * w2[i];
        d += value * w3[i];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* x[depth] -> y[channels] */
static inline void mcud_pixel_f32(const mcud_channels_f32 *to, const float *x, float *y)
{
    const float *w = to->weights;
    int32_t k = 0;
    for (; k + 4 <= to->channels; k += 4) {
        float sums[4] = {to->bias[k], to->bias[k + 1], to->bias[k + 2], to->bias[k + 3]};
        mcud_dot4_f32(x, w, to->depth, to->depth, sums);
        for (int32_t i = 0; i < 4; i++) {
            y[k + i] = mcud_clamp_f32(sums[i], to->low, to->high);
        }
        w += 4 * to->depth;
    }
    for (; k < to->channels; k++) {
        y[k] = mcud_clamp_f32(mcud_dot_f32(x, w, to->depth, to->bias[k]), to->low, to->high);
        w += to->depth;
    }
}

/* x0[depth], x1[depth] -> y0[channels], y1[channels] */
static inline void mcud_pixels_f32(const mcud_channels_f32 *to, const float *x0, const float *x1, float *y0,
                                   float *y1)
{
    const float *w0 = to->weights;
    int32_t k = 0;
    for (; k + 4 <= to->channels; k += 4) {
        const float *w1 = w0 + to->depth;
        const float *w2 = w1 + to->depth;
        const float *w3 = w2 + to->depth;
        float a0 = to->bias[k];
        float b0 = to->bias[k + 1];
        float c0 = to->bias[k + 2];
        float d0 = to->bias[k + 3];
        float a1 = a0;
        float b1 = b0;
        float c1 = c0;
        float d1 = d0;
        for (int32_t i = 0; i < to->depth; i++) {
            a0 += x0[i] * w0[i];
            a1 += x1[i] * w0[i];
            b0 += x0[i] * w1[i];
            b1 += x1[i] * w1[i];
            c0 += x0[i] * w2[i];
            c1 += x1[i] * w2[i];
            d0 += x0[i] * w3[i];
            d1 += x1[i] * w3[i];
        }
        y0[k] = mcud_clamp_f32(a0, to->low, to->high);
        y0[k + 1] = mcud_clamp_f32(b0, to->low, to->high);
        y0[k + 2] = mcud_clamp_f32(c0, to->low, to->high);
        y0[k + 3] = mcud_clamp_f32(d0, to->low, to->high);
        y1[k] = mcud_clamp_f32(a1, to->low, to->high);
        y1[k + 1] = mcud_clamp_f32(b1, to->low, to->high);
        y1[k + 2] = mcud_clamp_f32(c1, to->low, to->high);
        y1[k + 3] = mcud_clamp_f32(d1, to->low, to->high);
        w0 = w3 + to->depth;
    }
    for (; k < to->channels; k++) {
        y0[k] = mcud_clamp_f32(mcud_dot_f32(x0, w0, to->depth, to->bias[k]), to->low, to->high);
        y1[k] = mcud_clamp_f32(mcud_dot_f32(x1, w0, to->depth, to->bias[k]), to->low, to->high);
        w0 += to->depth;
    }
}

#endif
