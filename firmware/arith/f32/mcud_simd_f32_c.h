/* mcud_simd_f32.h in portable C. */
#ifndef MCUD_SIMD_F32_C_H
#define MCUD_SIMD_F32_C_H

/* x[values], w[values][4] */
static inline void mcud_add_1x4_f32(const float *x, const float *w, int32_t values, float sums[4])
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (const float *const end = x + values; x != end; x++, w += 4) {
        a = mcud_mac_f32(*x, w[0], a);
        b = mcud_mac_f32(*x, w[1], b);
        c = mcud_mac_f32(*x, w[2], c);
        d = mcud_mac_f32(*x, w[3], d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* x[values], w[values][4] */
static inline void mcud_raised_1x4_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[4])
{
    float sums[4];
    memcpy(sums, base->bias, sizeof sums);
    mcud_add_1x4_f32(x, w, values, sums);
    for (int32_t c = 0; c < 4; c++) {
        y[c] = sums[c] < base->low ? base->low : sums[c];
    }
}

/* x[values], w[2][values][4] */
static inline void mcud_raised_1x8_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[8])
{
    const mcud_base_f32 next = {base->bias + 4, base->low};
    mcud_raised_1x4_f32(x, w, values, base, y);
    mcud_raised_1x4_f32(x, w + 4 * values, values, &next, y + 4);
}

/* The first two of the four pixels. */
static inline void mcud_add_2x4_f32(const float *x, int32_t step, const float *w, int32_t values,
                                    float sums[8])
{
    float a0 = sums[0];
    float b0 = sums[1];
    float c0 = sums[2];
    float d0 = sums[3];
    float a1 = sums[4];
    float b1 = sums[5];
    float c1 = sums[6];
    float d1 = sums[7];
    const float *const end = x + values;
    const float *next = x + step;
    for (; x != end; x++, next++, w += 4) {
        a0 = mcud_mac_f32(*x, w[0], a0);
        a1 = mcud_mac_f32(*next, w[0], a1);
        b0 = mcud_mac_f32(*x, w[1], b0);
        b1 = mcud_mac_f32(*next, w[1], b1);
        c0 = mcud_mac_f32(*x, w[2], c0);
        c1 = mcud_mac_f32(*next, w[2], c1);
        d0 = mcud_mac_f32(*x, w[3], d0);
        d1 = mcud_mac_f32(*next, w[3], d1);
    }
    sums[0] = a0;
    sums[1] = b0;
    sums[2] = c0;
    sums[3] = d0;
    sums[4] = a1;
    sums[5] = b1;
    sums[6] = c1;
    sums[7] = d1;
}

/* x[values], x[step + values], ..., w[values][4]. Two pixels at a time, for want of registers. */
static inline void mcud_add_4x4_f32(const float *x, int32_t step, const float *w, int32_t values,
                                    float sums[16])
{
    for (int32_t pixel = 0; pixel < 4; pixel += 2) {
        mcud_add_2x4_f32(x + pixel * step, step, w, values, sums + 4 * pixel);
    }
}

/* x[count][8], w[count][8]: one row of the taps */
static inline void mcud_add_taps_8_f32(const float *x, const float *w, const mcud_window_taps_f32 *taps, float sums[8])
{
    for (int32_t half = 0; half < 8; half += 4, sums += 4) {
        const float *from = x + half;
        const float *by = w + half;
        float a = sums[0];
        float b = sums[1];
        float c = sums[2];
        float d = sums[3];
        for (int32_t s = 0; s < taps->count; s++, from += taps->x_pitch, by += taps->w_pitch) {
            a = mcud_mac_f32(from[0], by[0], a);
            b = mcud_mac_f32(from[1], by[1], b);
            c = mcud_mac_f32(from[2], by[2], c);
            d = mcud_mac_f32(from[3], by[3], d);
        }
        sums[0] = a;
        sums[1] = b;
        sums[2] = c;
        sums[3] = d;
    }
}

/* x[values], w[values][8], whose lines lie `pitch` values apart */
static inline void mcud_add_lines_8_f32(const float *x, const float *w, int32_t pitch, int32_t values, float sums[8])
{
    for (int32_t half = 0; half < 8; half += 4, sums += 4) {
        const float *line = w + half;
        float a = sums[0];
        float b = sums[1];
        float c = sums[2];
        float d = sums[3];
        for (int32_t i = 0; i < values; i++, line += pitch) {
            a = mcud_mac_f32(x[i], line[0], a);
            b = mcud_mac_f32(x[i], line[1], b);
            c = mcud_mac_f32(x[i], line[2], c);
            d = mcud_mac_f32(x[i], line[3], d);
        }
        sums[0] = a;
        sums[1] = b;
        sums[2] = c;
        sums[3] = d;
    }
}

/* See mcud_clamp_f32.h. */
static inline void mcud_clamp_4_f32(const float sums[4], float low, float high, float *y)
{
    for (int32_t c = 0; c < 4; c++) {
        y[c] = mcud_clamp_f32(sums[c], low, high);
    }
}

#endif
