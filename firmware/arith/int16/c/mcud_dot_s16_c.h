/* mcud_dot_s16.h in portable C. */
#ifndef MCUD_DOT_S16_C_H
#define MCUD_DOT_S16_C_H

static inline const int32_t *mcud_dot_fours_s16(const int16_t *x, int32_t groups, const int32_t *w, int32_t sums[4])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    for (const int16_t *end = x + 4 * groups; x < end; x += 4, w += 4) {
        const int8_t *bytes = (const int8_t *)w;
        a += x[0] * bytes[0] + x[1] * bytes[1] + x[2] * bytes[2] + x[3] * bytes[3];
        b += x[0] * bytes[4] + x[1] * bytes[5] + x[2] * bytes[6] + x[3] * bytes[7];
        c += x[0] * bytes[8] + x[1] * bytes[9] + x[2] * bytes[10] + x[3] * bytes[11];
        d += x[0] * bytes[12] + x[1] * bytes[13] + x[2] * bytes[14] + x[3] * bytes[15];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}

/* Channels `at` to at + 3 of `count` taps. */
static inline void mcud_dot_taps_s16(const int16_t *const *taps, int32_t count, int32_t at, const int32_t *w,
                                     int32_t sums[4])
{
    int32_t t = 0;
    for (; t + 1 < count; t += 2, w += 2) {
        const int16_t *x = taps[t] + at;
        const int16_t *z = taps[t + 1] + at;
        const int8_t *bytes = (const int8_t *)w;
        /* two channels of the first tap, the same of the second, then the other two channels of both */
        sums[0] += x[0] * bytes[0] + z[0] * bytes[2];
        sums[1] += x[1] * bytes[1] + z[1] * bytes[3];
        sums[2] += x[2] * bytes[4] + z[2] * bytes[6];
        sums[3] += x[3] * bytes[5] + z[3] * bytes[7];
    }
    if (t < count) {
        const int8_t *bytes = (const int8_t *)w;
        for (int32_t i = 0; i < 4; i++) {
            sums[i] += taps[t][at + i] * bytes[i];
        }
    }
}

#endif
