/* Common parts of recurrent float networks: parameters, the walk through time, gates. */
#ifndef MCUD_RECURRENT_F32_H
#define MCUD_RECURRENT_F32_H

#include <float.h>
#include <string.h>

#include "mcud.h"
#include "mcud_pixel_f32.h"
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
    mcud_cell_f32 cell;
} mcud_recurrent_f32_params;

enum { MCUD_ALL_STEPS, MCUD_LAST_H, MCUD_LAST_C };

/* One step: x and the state to the next state. `params` are the kernel's. */
typedef void mcud_recurrent_f32_step(const void *params, const float *x, float *h, float *c, float *gates);

static inline int32_t mcud_in_fours(int32_t count)
{
    return (count + 3) / 4 * 4;
}

/* bias + weights * x, for `results` results; y may be bias. */
static inline void mcud_gates_f32(const float *weights, const float *bias, const float *x, int32_t depth,
                                  int32_t results, float *y)
{
    const mcud_channels_f32 to = {weights, bias, results, depth, {-INFINITY, INFINITY}};
    mcud_pixel_f32(&to, x, y);
}

/* Where a state is while the steps run: where it comes from if it is kept there, else in scratch, which moves on. */
static inline float *mcud_state_f32(const mcud_op *op, const mcud_cell_f32 *cell, const float *initial, int32_t number,
                                    float **scratch)
{
    const float *first = initial == NULL ? NULL : initial + number * cell->hidden;
    if (cell->states > number) {
        float *const given = mcud_row(op->in[1 + number], 0);
        if (cell->keeps) {
            return given;
        }
        first = given;
    }
    float *const state = *scratch;
    *scratch += mcud_in_fours(cell->hidden);
    if (first != NULL) {
        memcpy(state, first, (size_t)cell->hidden * sizeof *state);
    }
    return state;
}

/* A kernel's body. `step` is known when this is inlined. */
static inline void mcud_recurrent_f32(const mcud_op *op, const mcud_cell_f32 *cell, const float *initial,
                                      int32_t first_row, mcud_recurrent_f32_step *step)
{
    const int32_t hidden = cell->hidden;
    const float *const in = mcud_row(op->in[0], first_row);
    float *gates = mcud_row(op->scratch, first_row);
    float *const h = mcud_state_f32(op, cell, initial, 0, &gates);
    float *const c = mcud_state_f32(op, cell, initial, 1, &gates);
    float *const out = mcud_row(op->out, first_row);
    const size_t bytes = (size_t)hidden * sizeof *h;
    for (int32_t i = 0; i < cell->steps; i++) {
        const int32_t at = cell->reverse ? cell->steps - 1 - i : i;
        step(op->params, in + at * cell->inputs, h, c, gates);
        if (cell->result == MCUD_ALL_STEPS) {
            memcpy(out + at * hidden, h, bytes);
        }
    }
    if (cell->result != MCUD_ALL_STEPS) {
        memcpy(out, cell->result == MCUD_LAST_H ? h : c, bytes);
    }
}

typedef float mcud_recurrent_f32_function(float x);

/* A step of a plain network: h = function(bias + weights * x + recurrent weights * h). */
static inline void mcud_plain_step_f32(const mcud_recurrent_f32_params *params, const float *x, float *h, float *gates,
                                       mcud_recurrent_f32_function *function)
{
    const int32_t hidden = params->cell.hidden;
    mcud_gates_f32(params->input_weights, params->bias, x, params->cell.inputs, hidden, gates);
    mcud_gates_f32(params->recurrent_weights, gates, h, hidden, hidden, gates);
    for (int32_t k = 0; k < hidden; k++) {
        h[k] = function(gates[k]);
    }
}

/* A gate as its function sees it. ONNX Runtime's LSTM and GRU clip gates with a bias so, without a clip by FLT_MAX. */
static inline float mcud_gate_f32(const mcud_cell_f32 *cell, float x)
{
    return cell->saturates && !(x < FLT_MAX) ? FLT_MAX : x;
}

#endif
