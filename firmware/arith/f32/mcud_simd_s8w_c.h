/* mcud_simd_s8w.h in portable C. */
#ifndef MCUD_SIMD_S8W_C_H
#define MCUD_SIMD_S8W_C_H

/* x[values], w[values][4] */
static inline void mcud_add_1x4_s8w(const float *x, const int8_t *w, const float scale[4], int32_t values,
                                    float sums[4])
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (const float *const end = x + values; x != end; x++, w += 4) {
        a = mcud_mac_f32(*x, (float)w[0] * scale[0], a);
        b = mcud_mac_f32(*x, (float)w[1] * scale[1], b);
        c = mcud_mac_f32(*x, (float)w[2] * scale[2], c);
        d = mcud_mac_f32(*x, (float)w[3] * scale[3], d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* x[values], w[2][values][4] */
static inline void mcud_add_1x8_s8w(const float *x, const int8_t *w, const float scale[8], int32_t values,
                                    float sums[8])
{
    for (int32_t block = 0; block < 2; block++) {
        mcud_add_1x4_s8w(x, w + 4 * block * values, scale + 4 * block, values, sums + 4 * block);
    }
}

/* x[values], x[step + values], ..., w[values][4]: each weight is widened once. */
static inline void mcud_add_4x4_s8w(const float *x, int32_t step, const int8_t *w, const float scale[4],
                                    int32_t values, float sums[16])
{
    const float *const end = x + values;
    for (; x != end; x++, w += 4) {
        for (int32_t channel = 0; channel < 4; channel++) {
            const float weight = (float)w[channel] * scale[channel];
            float *const to = sums + channel;
            to[0] = mcud_mac_f32(x[0], weight, to[0]);
            to[4] = mcud_mac_f32(x[step], weight, to[4]);
            to[8] = mcud_mac_f32(x[2 * step], weight, to[8]);
            to[12] = mcud_mac_f32(x[3 * step], weight, to[12]);
        }
    }
}

#endif
