#include "cells_f32.h"

#include <math.h>

#include "mcud_clamp_f32.h"
#include "mcud_exponential_f32.h"

static float of(const mcud_curve_f32 *curve, float x)
{
    switch (curve->kind) {
    case MCUD_CURVE_SIGMOID:
        return mcud_sigmoidf(x);
    case MCUD_CURVE_TANH:
        return curve->alpha * mcud_tanhf(curve->beta * x);
    case MCUD_CURVE_LEAKY:
        return x < 0.0f ? curve->alpha * x : x;
    case MCUD_CURVE_ELU:
        return x < 0.0f ? curve->alpha * (mcud_expf(x) - 1.0f) : x;
    case MCUD_CURVE_THRESHOLD:
        return x > curve->alpha ? x : 0.0f;
    case MCUD_CURVE_SOFTSIGN:
        return x / (1.0f + fabsf(x));
    default:
        return mcud_clamp_f32(curve->alpha * x + curve->beta, curve->min, curve->max);
    }
}

/* The function `curve` of the clipped sum of a gate. */
static float of_sum(const mcud_cells_f32_params *params, const mcud_curve_f32 *curve, float sum)
{
    return of(curve, mcud_clamp_f32(mcud_gate_f32(&params->cell, sum), -params->clip, params->clip));
}

static void plain_cells(const mcud_cells_f32_params *params, const float *gates, float *h)
{
    for (int32_t k = 0; k < params->cell.hidden; k++) {
        h[k] = of_sum(params, &params->gate, gates[k]);
    }
}

/* `gates` has sums; that of the candidate is still without its product with h. */
static void gru_cells(const mcud_cells_f32_params *params, float *gates, float *h, float *c)
{
    const int32_t hidden = params->cell.hidden;
    float *const candidate = gates + 2 * hidden;
    for (int32_t k = 0; k < 2 * hidden; k++) {
        gates[k] = of_sum(params, &params->gate, gates[k]);
    }
    if (params->cell.reset_after) {
        mcud_gates_f32(params->candidate_weights, params->candidate_bias, h, hidden, hidden, c);
        for (int32_t k = 0; k < hidden; k++) {
            candidate[k] += gates[hidden + k] * c[k];
        }
    } else {
        for (int32_t k = 0; k < hidden; k++) {
            c[k] = gates[hidden + k] * h[k];
        }
        mcud_gates_f32(params->candidate_weights, candidate, c, hidden, hidden, candidate);
    }
    for (int32_t k = 0; k < hidden; k++) {
        h[k] = (1.0f - gates[k]) * of_sum(params, &params->candidate, candidate[k]) + gates[k] * h[k];
    }
}

static void lstm_cells(const mcud_cells_f32_params *params, const float *gates, float *h, float *c)
{
    const int32_t hidden = params->cell.hidden;
    const float *const peepholes = params->peepholes;
    for (int32_t k = 0; k < hidden; k++) {
        const float seen[3] = {
            peepholes == NULL ? 0.0f : peepholes[k],
            peepholes == NULL ? 0.0f : peepholes[hidden + k],
            peepholes == NULL ? 0.0f : peepholes[2 * hidden + k],
        };
        const float input = of_sum(params, &params->gate, gates[k] + seen[0] * c[k]);
        const float forget = params->coupled
                                 ? 1.0f - input
                                 : of_sum(params, &params->gate, gates[2 * hidden + k] + seen[2] * c[k]);
        c[k] = forget * c[k] + input * of_sum(params, &params->candidate, gates[3 * hidden + k]);
        const float output = of_sum(params, &params->gate, gates[hidden + k] + seen[1] * c[k]);
        h[k] = output * of(&params->state, c[k]);
    }
}

static void step(const void *kernel_params, const float *x, float *h, float *c, float *gates)
{
    const mcud_cells_f32_params *params = kernel_params;
    const int32_t hidden = params->cell.hidden;
    const int32_t sums = params->gates * hidden;
    const int32_t of_h = params->candidate_weights == NULL ? sums : 2 * hidden;
    mcud_gates_f32(params->input_weights, params->bias, x, params->cell.inputs, sums, gates);
    mcud_gates_f32(params->recurrent_weights, gates, h, hidden, of_h, gates);
    if (params->gates == 1) {
        plain_cells(params, gates, h);
    } else if (params->gates == 3) {
        gru_cells(params, gates, h, c);
    } else {
        lstm_cells(params, gates, h, c);
    }
}

void mcud_cells_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_cells_f32_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
