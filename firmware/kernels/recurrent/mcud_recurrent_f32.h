/* Common parts of recurrent float networks: parameters, the walk through time, gates. */
#ifndef MCUD_RECURRENT_F32_H
#define MCUD_RECURRENT_F32_H

#include <float.h>
#include <string.h>

#include "mcud.h"
#include "mcud_dot_f32.h"
#include "mcud_params.h"

/* Weights are packed as mcud_dot_f32.h wants them. Scratch is h[hidden], c[hidden], and the gates, whose number is the
 * kernel's affair; each is filled up to whole groups of four. A state that is kept where it comes from has no scratch. */
typedef struct {
    const float *input_weights;     /* of all gates */
    const float *recurrent_weights; /* of all gates, or of those that h itself goes to */
    const float *candidate_weights; /* of the others, or NULL */
    const float *bias;              /* of all gates */
    const float *candidate_bias;    /* of the others, or NULL */
    const float *peepholes;         /* [3][hidden], or NULL */
    const float *initial;           /* h[hidden], c[hidden]; NULL if they come as inputs */
    int32_t steps;
    int32_t inputs;
    int32_t hidden;
    int32_t reverse; /* 0 or 1 */
    int32_t result;  /* 0: h of every step; 1: the last h; 2: the last c */
    int32_t reset_after; /* 0 or 1: the reset gate applies to the product with h */
    int32_t states;      /* 0; 1: in[1] is the first h; 2: and in[2] the first c */
    int32_t keeps;       /* 0 or 1: they are left there as they are after the last step */
    mcud_act_f32 act;
    float cell_clip; /* c stays in [-cell_clip, cell_clip] */
    int32_t saturates; /* 0 or 1: a gate that is NaN or beyond FLT_MAX is FLT_MAX to its function */
} mcud_recurrent_f32_params;

enum { MCUD_ALL_STEPS, MCUD_LAST_H, MCUD_LAST_C };

/* One step: x and the state to the next state. */
typedef void mcud_recurrent_f32_step(const mcud_recurrent_f32_params *params, const float *x, float *h, float *c,
                                     float *gates);

static inline int32_t mcud_in_fours(int32_t count)
{
    return (count + 3) / 4 * 4;
}

/* bias + weights * x, for `results` results; y may be bias. */
static inline void mcud_gates_f32(const mcud_recurrent_f32_params *params, const float *weights, const float *bias,
                                  const float *x, int32_t depth, int32_t results, float *y)
{
    const mcud_channels_f32 to = {weights, bias, results, depth,
                                  {params->act.min, params->act.max}};
    mcud_pixel_f32(&to, x, y);
}

/* Where a state is while the steps run: where it comes from if it is kept there, else in scratch, which moves on. */
static inline float *mcud_state_f32(const mcud_op *op, int32_t number, float **scratch)
{
    const mcud_recurrent_f32_params *params = op->params;
    const int32_t hidden = params->hidden;
    const float *first = params->initial == NULL ? NULL : params->initial + number * hidden;
    if (params->states > number) {
        float *const given = mcud_row(op->in[1 + number], 0);
        if (params->keeps) {
            return given;
        }
        first = given;
    }
    float *const state = *scratch;
    *scratch += mcud_in_fours(hidden);
    if (first != NULL) {
        memcpy(state, first, (size_t)hidden * sizeof *state);
    }
    return state;
}

/* A kernel's body. `step` is known when this is inlined. */
static inline void mcud_recurrent_f32(const mcud_op *op, int32_t first_row, mcud_recurrent_f32_step *step)
{
    const mcud_recurrent_f32_params *params = op->params;
    const int32_t hidden = params->hidden;
    const float *const in = mcud_row(op->in[0], first_row);
    float *gates = mcud_row(op->scratch, first_row);
    float *const h = mcud_state_f32(op, 0, &gates);
    float *const c = mcud_state_f32(op, 1, &gates);
    float *const out = mcud_row(op->out, first_row);
    const size_t bytes = (size_t)hidden * sizeof *h;
    for (int32_t i = 0; i < params->steps; i++) {
        const int32_t at = params->reverse ? params->steps - 1 - i : i;
        step(params, in + at * params->inputs, h, c, gates);
        if (params->result == MCUD_ALL_STEPS) {
            memcpy(out + at * hidden, h, bytes);
        }
    }
    if (params->result != MCUD_ALL_STEPS) {
        memcpy(out, params->result == MCUD_LAST_H ? h : c, bytes);
    }
}

typedef float mcud_recurrent_f32_function(float x);

/* A step of a plain network: h = function(bias + weights * x + recurrent weights * h). */
static inline void mcud_plain_step_f32(const mcud_recurrent_f32_params *params, const float *x, float *h, float *gates,
                                       mcud_recurrent_f32_function *function)
{
    const int32_t hidden = params->hidden;
    mcud_gates_f32(params, params->input_weights, params->bias, x, params->inputs, hidden, gates);
    mcud_gates_f32(params, params->recurrent_weights, gates, h, hidden, hidden, gates);
    for (int32_t k = 0; k < hidden; k++) {
        h[k] = function(gates[k]);
    }
}

/* A gate as its function sees it. ONNX Runtime's LSTM and GRU clip gates with a bias so, without a clip by FLT_MAX. */
static inline float mcud_gate_f32(const mcud_recurrent_f32_params *params, float x)
{
    return params->saturates && !(x < FLT_MAX) ? FLT_MAX : x;
}

static inline float mcud_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

#endif
