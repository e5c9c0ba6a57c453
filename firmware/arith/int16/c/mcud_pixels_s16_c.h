/* mcud_pixels_s16.h in portable C. */
#ifndef MCUD_PIXELS_S16_C_H
#define MCUD_PIXELS_S16_C_H

static inline void mcud_expand_s16(int16_t *to, const int16_t *x, int32_t groups, int32_t pixels)
{
    for (const int16_t *end = x + 4 * groups; x < end; x += 4, to += 4 * pixels) {
        to[0] = x[0];
        to[1] = x[2];
        to[2 * pixels] = x[1];
        to[2 * pixels + 1] = x[3];
    }
}

static inline const int32_t *mcud_sum_pixels_s16(const int16_t *x, int32_t groups, int32_t pixels, const int32_t *w,
                                                 int32_t sums[6])
{
    for (; groups > 0; groups--, x += 4 * pixels, w += 2) {
        const int8_t *bytes = (const int8_t *)w;
        for (int32_t i = 0; i < 2 * pixels; i++) {
            const int16_t *even = x + i / 2 * 2;
            const int16_t *odd = even + 2 * pixels;
            const int8_t *weights = bytes + i % 2 * 4;
            sums[i] += even[0] * weights[0] + odd[0] * weights[1] + even[1] * weights[2] + odd[1] * weights[3];
        }
    }
    return w;
}

#endif
