/* Sums of gradients that grow from step to step, float32, and the parameters that they change. */
#ifndef MCUD_UPDATES_F32_H
#define MCUD_UPDATES_F32_H

#include "mcud_simd_f32.h"

/* The result is decay * before + step * sum. If `in_place`, `step` is 1 and the result itself is the sum, in
 * the memory of `before`: it is decay * before at the first step, and grows. */
typedef struct {
    const float *before;
    float *sums; /* of the rows so far */
    float *out;
    float decay;
    float step;
    int32_t is_first; /* no row is in the sums yet */
    int32_t is_last;  /* all rows are after this step */
    int32_t in_place;
} mcud_update_f32;

/* The sum of element `at` before a step. */
static inline float mcud_sum_before_f32(const mcud_update_f32 *of, int32_t at)
{
    if (!of->is_first) {
        return of->sums[at];
    }
    return of->in_place ? of->decay * of->before[at] : 0.0f;
}

/* The same of four elements. */
static inline void mcud_sums_before_f32(const mcud_update_f32 *of, int32_t at, float sums[4])
{
    if (of->is_first && !of->in_place) {
        sums[0] = 0.0f;
        sums[1] = 0.0f;
        sums[2] = 0.0f;
        sums[3] = 0.0f;
        return;
    }
    const float factor = of->is_first ? of->decay : 1.0f;
    const float *const from = (of->is_first ? of->before : of->sums) + at;
    sums[0] = factor * from[0];
    sums[1] = factor * from[1];
    sums[2] = factor * from[2];
    sums[3] = factor * from[3];
}

/* Stores the sum of element `at` after a step, and its result after the last. */
static inline void mcud_store_sum_f32(const mcud_update_f32 *of, int32_t at, float sum)
{
    if (of->is_last && !of->in_place) {
        of->out[at] = mcud_fused_f32(of->step, sum, of->decay * of->before[at]);
    } else {
        of->sums[at] = sum;
    }
}

/* The same of four elements. */
static inline void mcud_store_sums_f32(const mcud_update_f32 *of, int32_t at, const float sums[4])
{
    if (!of->is_last || of->in_place) {
        float *const to = of->sums + at;
        to[0] = sums[0];
        to[1] = sums[1];
        to[2] = sums[2];
        to[3] = sums[3];
        return;
    }
    const float *const before = of->before + at; /* four are read before one is written: `out` may be here */
    const float r0 = mcud_fused_f32(of->step, sums[0], of->decay * before[0]);
    const float r1 = mcud_fused_f32(of->step, sums[1], of->decay * before[1]);
    const float r2 = mcud_fused_f32(of->step, sums[2], of->decay * before[2]);
    const float r3 = mcud_fused_f32(of->step, sums[3], of->decay * before[3]);
    float *const out = of->out + at;
    out[0] = r0;
    out[1] = r1;
    out[2] = r2;
    out[3] = r3;
}

#endif
