/* Common parts of recurrent float networks whose weights are int8: parameters and gates. */
#ifndef MCUD_RECURRENT_S8W_H
#define MCUD_RECURRENT_S8W_H

#include "mcud_dot_s8w.h"
#include "mcud_recurrent_f32.h"

/* As mcud_recurrent_f32_params, with a scale for the weights of each result: see mcud_dot_s8w.h. */
typedef struct {
    const int8_t *input_weights;     /* of all gates */
    const int8_t *recurrent_weights; /* of all gates, or of those that multiply h itself */
    const int8_t *candidate_weights; /* of the others, or NULL */
    const float *input_scale;
    const float *recurrent_scale;
    const float *candidate_scale; /* or NULL */
    const float *bias;            /* of all gates */
    const float *candidate_bias;  /* of the others, or NULL */
    const float *peepholes;       /* [3][hidden], or NULL */
    const float *initial;         /* h[hidden], c[hidden]; NULL if they are inputs */
    mcud_cell_f32 cell;
} mcud_recurrent_s8w_params;

/* The weights of some gates, and the numbers of their inputs and results. */
typedef struct {
    const int8_t *weights;
    const float *scale;
    int32_t depth;
    int32_t results;
} mcud_matrix_s8w;

/* y = bias + matrix * x; y may be bias. */
static inline void mcud_gates_s8w(const mcud_matrix_s8w *matrix, const float *bias, const float *x, float *y)
{
    const mcud_channels_s8w to = {
        .weights = matrix->weights,
        .scale = matrix->scale,
        .bias = bias,
        .channels = matrix->results,
        .depth = matrix->depth,
        .act = {-INFINITY, INFINITY},
    };
    mcud_pixel_s8w(&to, x, y);
}

#endif
