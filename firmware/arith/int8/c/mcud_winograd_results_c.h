/* Winograd's results in portable C, for tiles of any height. */
#ifndef MCUD_WINOGRAD_RESULTS_C_H
#define MCUD_WINOGRAD_RESULTS_C_H

#include <stdint.h>

/* Combines the sums of 6 positions along an axis to 4 results; `last` is the factor of the last position. */
static inline void mcud_results_6(const uint32_t *m, int32_t step, uint32_t last, uint32_t *y, int32_t y_step)
{
    const uint32_t s = m[step] + m[2 * step];
    const uint32_t d = m[step] - m[2 * step];
    const uint32_t s2 = m[3 * step] + m[4 * step];
    const uint32_t d2 = m[3 * step] - m[4 * step];
    const uint32_t m5 = last * m[5 * step];
    y[0] = m[0] + s + s2;
    y[y_step] = d + 2 * d2;
    y[2 * y_step] = s + 4 * s2;
    y[3 * y_step] = d + 8 * d2 + m5;
}

#endif
