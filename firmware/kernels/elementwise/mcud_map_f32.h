/* The loops of functions of one float; each kernel adds its function. */
#ifndef MCUD_MAP_F32_H
#define MCUD_MAP_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float alpha; /* each kernel's header defines both */
    float beta;
} mcud_map_f32_params;

typedef float mcud_map_f32_function(float x, float alpha, float beta);

/* A kernel's body. The caller passes a constant `function`, so that the compiler inlines this and it. */
static inline void mcud_map_f32(const mcud_op *op, int32_t first_row, int32_t end_row, mcud_map_f32_function *function)
{
    const mcud_map_f32_params *params = op->params;
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t count = params->row_elements;
    const float alpha = params->alpha;
    const float beta = params->beta;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < count; i++) {
            out[i] = function(in[i], alpha, beta);
        }
    }
}

#endif
