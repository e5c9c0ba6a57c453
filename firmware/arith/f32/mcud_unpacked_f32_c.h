/* mcud_unpacked_f32.h in portable C. */
#ifndef MCUD_UNPACKED_F32_C_H
#define MCUD_UNPACKED_F32_C_H

/* x[values], x[pitches->pixels + values], w[values], w[pitches->lines + values], ... */
static inline void mcud_add_unpacked_2x4_f32(const float *x, const float *w, const mcud_pitches_f32 *pitches,
                                             int32_t values, float sums[8])
{
    const float *next = x + pitches->pixels;
    const float *w1 = w + pitches->lines;
    const float *w2 = w1 + pitches->lines;
    const float *w3 = w2 + pitches->lines;
    float a0 = sums[0];
    float b0 = sums[1];
    float c0 = sums[2];
    float d0 = sums[3];
    float a1 = sums[4];
    float b1 = sums[5];
    float c1 = sums[6];
    float d1 = sums[7];
    for (const float *const end = x + values; x != end; x++, next++) {
        a0 = mcud_mac_f32(*x, *w, a0);
        a1 = mcud_mac_f32(*next, *w++, a1);
        b0 = mcud_mac_f32(*x, *w1, b0);
        b1 = mcud_mac_f32(*next, *w1++, b1);
        c0 = mcud_mac_f32(*x, *w2, c0);
        c1 = mcud_mac_f32(*next, *w2++, c1);
        d0 = mcud_mac_f32(*x, *w3, d0);
        d1 = mcud_mac_f32(*next, *w3++, d1);
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

/* x[values], w[values], w[pitch + values], ... */
static inline void mcud_add_unpacked_1x4_f32(const float *x, const float *w, int32_t pitch, int32_t values,
                                             float sums[4])
{
    const float *w1 = w + pitch;
    const float *w2 = w1 + pitch;
    const float *w3 = w2 + pitch;
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (const float *const end = x + values; x != end; x++) {
        a = mcud_mac_f32(*x, *w++, a);
        b = mcud_mac_f32(*x, *w1++, b);
        c = mcud_mac_f32(*x, *w2++, c);
        d = mcud_mac_f32(*x, *w3++, d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

#endif
