#include "mcud_statistics.h"

#include <math.h>
#include <string.h>

void mcud_statistics_observe(const mcud_statistics *statistics, const int8_t *features)
{
    if (*statistics->count == UINT32_MAX) {
        return;
    }
    *statistics->count += 1u;
    /* Welford's sums: sums of the squares themselves would cancel in float32 */
    for (uint32_t i = 0; i < statistics->features; i++) {
        const float before = (float)features[i] - statistics->means[i];
        statistics->means[i] += before / (float)*statistics->count;
        statistics->squares[i] += before * ((float)features[i] - statistics->means[i]);
    }
}

static int8_t nearest(float value)
{
    if (!(value > -128.0f)) {
        return -128;
    }
    return value >= 127.0f ? 127 : (int8_t)(value + (value < 0.0f ? -0.5f : 0.5f));
}

void mcud_statistics_apply(const mcud_statistics *statistics, const int8_t *features, int8_t *to)
{
    const uint32_t count = *statistics->count;
    if (count < (uint32_t)MCUD_STATISTICS_LEAST) {
        memcpy(to, features, statistics->features);
        return;
    }
    for (uint32_t i = 0; i < statistics->features; i++) {
        const float deviation = sqrtf(statistics->squares[i] / (float)count);
        const float scale = statistics->training_deviations[i] / (deviation > 1.0f ? deviation : 1.0f);
        to[i] = nearest(((float)features[i] - statistics->means[i]) * scale + statistics->training_means[i]);
    }
}

void mcud_statistics_reset(const mcud_statistics *statistics)
{
    memset(statistics->means, 0, statistics->features * sizeof *statistics->means);
    memset(statistics->squares, 0, statistics->features * sizeof *statistics->squares);
    *statistics->count = 0;
}
