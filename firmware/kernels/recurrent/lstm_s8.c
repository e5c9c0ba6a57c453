#include "lstm_s8.h"

#include <string.h>

#include "mcud_dot_row_s8.h"
#include "mcud_fixed_s16.h"
#include "mcud_quant.h"

enum { GATES = 4, NARROW = 15 };

/* Weights of all gates, with their biases and scales. */
typedef struct {
    const int32_t *weights;
    const int32_t *biases;
    const int32_t *scales; /* [GATES][2] */
} product;

/* Adds the products with x[depth] to the gates[GATES][cells], which are narrowed to 16 bits. */
static void add_product(const product *from, const int8_t *x, int32_t depth, int32_t cells, int16_t *gates)
{
    const int32_t *w = from->weights;
    const int32_t *bias = from->biases;
    for (int32_t gate = 0; gate < GATES; gate++) {
        const int32_t multiplier = from->scales[2 * gate];
        const int32_t exponent = from->scales[2 * gate + 1];
        for (int32_t cell = 0; cell < cells; cell += 4, bias += 4, gates += 4) {
            int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
            w = mcud_dot_row_s8(x, depth, w, sums);
            for (int32_t i = 0; i < 4; i++) {
                const int32_t value = gates[i] + mcud_scale_twice(sums[i], multiplier, exponent);
                gates[i] = (int16_t)mcud_clamp(value, INT16_MIN, INT16_MAX);
            }
        }
    }
}

/* The next states of all cells by their gates[GATES][cells]. */
static void update(const mcud_lstm_s8_params *params, const int16_t *gates, int32_t cells, int8_t *h, int16_t *c)
{
    const mcud_lstm_s8_params p = *params;
    for (int32_t k = 0; k < p.hidden; k++) {
        const int32_t input = mcud_logistic_s16(gates[k]);
        const int32_t forget = mcud_logistic_s16(gates[cells + k]);
        const int32_t candidate = mcud_tanh_s16(gates[2 * cells + k], 3);
        const int32_t output = mcud_logistic_s16(gates[3 * cells + k]);
        const int32_t remembered = mcud_divide_s16(forget * c[k], NARROW);
        const int32_t added = mcud_divide_s16(input * candidate, NARROW + p.cell_bits);
        const int32_t cell = mcud_clamp(remembered + added, INT16_MIN, INT16_MAX);
        c[k] = (int16_t)mcud_clamp(cell, -p.cell_clip, p.cell_clip);
        const int32_t shown = output * mcud_tanh_s16(c[k], p.cell_bits);
        const int32_t state = p.zero_point + mcud_scale_twice(shown, p.multiplier, p.exponent);
        h[k] = (int8_t)mcud_clamp(state, INT8_MIN, INT8_MAX);
    }
}

void mcud_lstm_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_lstm_s8_params *params = op->params;
    const int32_t hidden = params->hidden;
    const int32_t cells = (hidden + 3) / 4 * 4;
    const product inputs = {params->input_weights, params->biases, params->scales};
    const product states = {params->recurrent_weights, params->biases + GATES * cells, params->scales + 2 * GATES};
    const int8_t *x = mcud_row(op->in[0], first_row);
    int8_t *h = mcud_row(op->in[1], first_row);
    int16_t *c = mcud_row(op->in[2], first_row);
    int16_t *gates = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    for (int32_t step = 0; step < params->steps; step++, x += params->inputs) {
        memset(gates, 0, (size_t)(GATES * cells) * sizeof *gates);
        add_product(&inputs, x, params->inputs, cells, gates);
        add_product(&states, h, hidden, cells, gates);
        update(params, gates, cells, h, c);
        if (params->last == 0) {
            memcpy(out, h, (size_t)hidden);
            out += hidden;
        }
    }
    if (params->last != 0) {
        memcpy(out, h, (size_t)hidden);
    }
}
