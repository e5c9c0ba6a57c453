/* Computes results of sums, rounded twice: see mcud_scale_twice. */
#ifndef MCUD_FINISH_TWICE_H
#define MCUD_FINISH_TWICE_H

#include "mcud_params.h"
#include "mcud_quant.h"

/* The output's zero point, and the bounds of its values. */
typedef struct {
    int32_t zero_point;
    int32_t low;
    int32_t high;
} mcud_twice_s8;

/* Writes y[count] from sums[count], scaled by their multipliers and exponents. */
static inline void mcud_finish_twice(const int32_t *sums, const int32_t *multipliers, const int8_t *exponents,
                                     int32_t count, const mcud_twice_s8 *to, int8_t *y)
{
    const mcud_twice_s8 finish = *to;
    for (const int8_t *end = y + count; y < end; y++) {
        const int32_t scaled = mcud_scale_twice(*sums++, *multipliers++, *exponents++);
        *y = (int8_t)mcud_clamp(finish.zero_point + scaled, finish.low, finish.high);
    }
}

#endif
