/* The loops of float reductions; each kernel adds its function of two values. */
#ifndef MCUD_REDUCE_F32_H
#define MCUD_REDUCE_F32_H

#include <stddef.h>

#include "mcud.h"

typedef struct {
    int32_t rows; /* rows that one output row reduces; 1 if rows stay */
    int32_t outer;
    int32_t outer_step;
    int32_t inner;
    int32_t cols;
    int32_t col_step;
    int32_t channels;
    float count; /* divisor of the result */
} mcud_reduce_f32_params;

typedef float mcud_reduce_f32_function(float result, float x);

/* Reduces elements in order to one element of the output. The first one is at `place` in its row. The result begins
 * with `first`, or if that is NULL with the first element. */
static inline float mcud_reduce_f32_at(const mcud_reduce_f32_params *params, const mcud_tensor *tensor, int32_t row,
                                       int32_t place, const float *first, mcud_reduce_f32_function *function)
{
    float result = first != NULL ? *first : ((const float *)mcud_row(tensor, row))[place];
    for (int32_t r = 0; r < params->rows; r++) {
        const float *run = mcud_row(tensor, row + r);
        run += place;
        for (int32_t o = 0; o < params->outer; o++) {
            for (int32_t i = 0; i < params->inner; i++) {
                result = function(result, run[i]);
            }
            run += params->outer_step;
        }
    }
    return result;
}

/* A kernel's body; `first` is the result of no elements, or NULL. The caller passes a constant `function`, so that the
 * compiler inlines this and it. */
static inline void mcud_reduce_f32(const mcud_op *op, int32_t first_row, int32_t end_row, const float *first,
                                   mcud_reduce_f32_function *function)
{
    const mcud_reduce_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            for (int32_t channel = 0; channel < params->channels; channel++) {
                const int32_t place = col * params->col_step + channel;
                *out = mcud_reduce_f32_at(params, op->in[0], row, place, first, function) / params->count;
                out++;
            }
        }
    }
}

#endif
