/* Common parts of the kernels of attention of one query: the live rows, and the weights of rows by their scores. */
#ifndef MCUD_ATTEND_H
#define MCUD_ATTEND_H

#include <stdint.h>

#include "mcud_exponential_f32.h"
#include "mcud_params.h"

/* The rows [first, first + count) that have weights. If no row is live, `alike` is 1: all rows have the same weight. */
typedef struct {
    int32_t first;
    int32_t count;
    int32_t alike;
} mcud_attended;

static inline int32_t mcud_clipped_row(int64_t row, int32_t count)
{
    return row < 0 ? 0 : row > count ? count : (int32_t)row;
}

static inline mcud_attended mcud_attended_rows(const mcud_live_rows *rows, int64_t position)
{
    const int32_t first = mcud_clipped_row(rows->first + rows->first_step * position, rows->count);
    const int32_t end = mcud_clipped_row(rows->end + rows->end_step * position, rows->count);
    return end > first ? (mcud_attended){first, end - first, 0} : (mcud_attended){0, rows->count, 1};
}

/* Replaces scores by weights, not yet divided by their sum; returns the sum. */
static inline float mcud_weigh_f32(float *scores, int32_t count, float scale)
{
    float largest = scores[0];
    for (int32_t i = 1; i < count; i++) {
        const float score = scores[i];
        largest = scale < 0.0f ? (score < largest ? score : largest) : (score > largest ? score : largest);
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < count; i++) {
        scores[i] = mcud_expf((scores[i] - largest) * scale);
        sum += scores[i];
    }
    return sum;
}

static inline float mcud_weigh_alike_f32(float *scores, int32_t count)
{
    for (int32_t row = 0; row < count; row++) {
        scores[row] = 1.0f;
    }
    return (float)count;
}

#endif
