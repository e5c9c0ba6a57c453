/* The optimizer of the next training step, float32: the same rate, and one more sample in the batch.
 *
 * in[0]    float [2], one row, the optimizer of mcud_updates_f32.h
 * out      as in[0], and may be its memory
 */
#ifndef MCUD_NEXT_SAMPLE_F32_H
#define MCUD_NEXT_SAMPLE_F32_H

#include "mcud.h"

typedef struct {
    float batch;
} mcud_next_sample_f32_params;

mcud_kernel mcud_next_sample_f32;

#endif
