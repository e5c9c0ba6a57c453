/* Sums of gradients that grow from step to step, float32, and the parameters that they change.
 *
 * The optimizer, a tensor of two values, has the learning rate and the number of earlier samples in the batch. */
#ifndef MCUD_UPDATES_F32_H
#define MCUD_UPDATES_F32_H

#include <string.h>

#include "mcud_simd_f32.h"

/* The result is decay * before + step * sum. If `in_place`, `step` is 1 and the result itself is the sum, in
 * the memory of `before`: it is decay * before at the first step, and grows. */
typedef struct {
    const float *before;
    float *sums; /* of the rows so far; NULL if one step has all rows and the result is not the sum */
    float *out;
    float decay;
    float step;
    int32_t is_first; /* no row is in the sums yet */
    int32_t is_last;  /* after this step all rows are in the sums */
    int32_t in_place;
} mcud_update_f32;

/* Sets decay and step by the optimizer. `factor` is the weight decay; for a sum of gradients it is the momentum, which
 * applies at the first sample of a batch. */
static inline void mcud_scale_update_f32(mcud_update_f32 *of, const float optimizer[2], float factor)
{
    if (of->in_place) {
        of->decay = optimizer[1] > 0.0f ? 1.0f : factor;
        of->step = 1.0f;
    } else {
        of->decay = mcud_mac_f32(-optimizer[0], factor, 1.0f);
        of->step = -optimizer[0];
    }
}

/* Begins `count` sums at the first step. */
static inline void mcud_begin_sums_f32(const mcud_update_f32 *of, int32_t count)
{
    if (!of->is_first || of->sums == NULL) {
        return;
    }
    if (!of->in_place) {
        memset(of->sums, 0, (size_t)count * sizeof *of->sums);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        of->sums[i] = of->decay * of->before[i];
    }
}

/* Stores a result; `before` and `out` may be the same memory. */
static inline void mcud_store_result_f32(const mcud_update_f32 *of, int32_t at, float sum)
{
    of->out[at] = mcud_mac_f32(of->step, sum, of->decay * of->before[at]);
}

/* Stores `count` results at the last step. */
static inline void mcud_end_sums_f32(const mcud_update_f32 *of, int32_t count)
{
    for (int32_t i = 0; of->is_last && !of->in_place && of->sums != NULL && i < count; i++) {
        mcud_store_result_f32(of, i, of->sums[i]);
    }
}

#endif
