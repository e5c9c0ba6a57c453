#include "lstm_s16.h"

#include <string.h>

#include "mcud_dot_s16.h"
#include "mcud_sigmoid_s16.h"

enum {
    GATES = 4,
    NARROW = -14,         /* an exponent: with the multiplier HALF, a division by 2^15 */
    HALF = 1 << 30,
    GATE_BITS = 3,        /* integer bits of a gate's sum, as the table expects */
    GROUPS_AT_A_TIME = 127, /* sums of 4 * 127 products fit 32 bits */
};

/* sums[4] += the products of x[4 * groups] by the weights of four cells; returns the record after these. */
static const int32_t *add_products(const int16_t *x, int32_t groups, const int32_t *w, int64_t sums[4])
{
    while (groups > 0) {
        const int32_t count = groups < GROUPS_AT_A_TIME ? groups : GROUPS_AT_A_TIME;
        int32_t part[4] = {0, 0, 0, 0};
        w = mcud_dot_fours_s16(x, count, w, part);
        for (int32_t i = 0; i < 4; i++) {
            sums[i] += part[i];
        }
        x += 4 * count;
        groups -= count;
    }
    return w;
}

static int32_t narrowed(const mcud_lstm_s16_params *params, int64_t sum, const int32_t *scale)
{
    const int64_t scaled = mcud_scale_wide(sum * ((int64_t)1 << params->left_shift), scale[0], scale[1]);
    return (int32_t)(scaled < INT16_MIN ? INT16_MIN : (scaled > INT16_MAX ? INT16_MAX : scaled));
}

/* Sets the sums gates[GATES][cells] to the product with the input x[4 * groups]. */
static void begin_gates(const mcud_lstm_s16_params *params, const int16_t *x, int32_t groups, int32_t cells,
                        int16_t *gates)
{
    const int32_t *w = params->input_weights;
    const int32_t *low = params->biases;
    const int32_t *high = low + GATES * cells;
    const int32_t *scale = params->scales;
    for (int32_t gate = 0; gate < GATES; gate++, scale += 2) {
        for (int32_t cell = 0; cell < cells; cell += 4, low += 4, high += 4) {
            int64_t sums[4];
            for (int32_t i = 0; i < 4; i++) {
                sums[i] = high[i] * ((int64_t)1 << 32) + (uint32_t)low[i];
            }
            w = add_products(x, groups, w, sums);
            for (int32_t i = 0; i < 4; i++) {
                *gates++ = (int16_t)narrowed(params, sums[i], scale);
            }
        }
    }
}

/* Adds the product with h[4 * groups] to the sums. */
static void end_gates(const mcud_lstm_s16_params *params, const int16_t *h, int32_t groups, int32_t cells,
                      int16_t *gates)
{
    const int32_t *w = params->recurrent_weights;
    const int32_t *scale = params->scales + 2 * GATES;
    for (int32_t gate = 0; gate < GATES; gate++, scale += 2) {
        for (int32_t cell = 0; cell < cells; cell += 4) {
            int64_t sums[4] = {0, 0, 0, 0};
            w = add_products(h, groups, w, sums);
            for (int32_t i = 0; i < 4; i++, gates++) {
                *gates = (int16_t)mcud_clamp(*gates + narrowed(params, sums[i], scale), INT16_MIN, INT16_MAX);
            }
        }
    }
}

static int32_t logistic(const uint16_t *table, int32_t gate)
{
    return mcud_logistic_by_table(table, 3 * gate);
}

/* tanh of a number with `bits` integer bits. */
static int32_t tangent(const uint16_t *table, int32_t value, int32_t bits)
{
    const int32_t right = GATE_BITS - bits;
    if (right > 0) {
        return mcud_tanh_by_table(table, (3 * value + (1 << (right - 1))) >> right);
    }
    return mcud_tanh_by_table(table, 3 * value * (1 << -right));
}

/* value * 2^-15 * 2^-bits, rounded twice, see mcud_scale_twice. */
static int32_t divided(int32_t value, int32_t bits)
{
    return mcud_clamp(mcud_scale_twice(value, HALF, NARROW - bits), INT16_MIN, INT16_MAX);
}

/* Computes the next states of all cells from the sums gates[GATES][cells]. */
static void update(const mcud_lstm_s16_params *params, const int16_t *gates, int32_t cells, int16_t *h, int16_t *c)
{
    const mcud_lstm_s16_params p = *params;
    for (int32_t k = 0; k < p.hidden; k++) {
        const int32_t input = logistic(p.table, gates[k]);
        const int32_t forget = logistic(p.table, gates[cells + k]);
        const int32_t candidate = tangent(p.table, gates[2 * cells + k], GATE_BITS);
        const int32_t output = logistic(p.table, gates[3 * cells + k]);
        const int32_t sum = divided(forget * c[k], 0) + divided(input * candidate, p.cell_bits);
        c[k] = (int16_t)mcud_clamp(mcud_clamp(sum, INT16_MIN, INT16_MAX), -p.cell_clip, p.cell_clip);
        const int32_t shown = output * tangent(p.table, c[k], p.cell_bits);
        h[k] = (int16_t)mcud_clamp(mcud_scale_twice(shown, p.multiplier, p.exponent), INT16_MIN, INT16_MAX);
    }
}

/* Copies `count` values, filled up to whole groups of four; returns the number of groups. */
static int32_t fill(int16_t *values, const int16_t *from, int32_t count)
{
    memcpy(values, from, (size_t)count * sizeof *values);
    for (; count % 4 != 0; count++) {
        values[count] = 0;
    }
    return count / 4;
}

void mcud_lstm_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_lstm_s16_params *params = op->params;
    const int32_t hidden = params->hidden;
    const int32_t cells = (hidden + 3) / 4 * 4;
    const int32_t most = params->inputs > hidden ? params->inputs : hidden;
    const int16_t *x = mcud_row(op->in[0], first_row);
    int16_t *h = mcud_row(op->in[1], first_row);
    int16_t *c = mcud_row(op->in[2], first_row);
    int16_t *values = mcud_row(op->scratch, first_row);
    int16_t *gates = values + (most + 3) / 4 * 4;
    int16_t *out = mcud_row(op->out, first_row);
    const size_t bytes = (size_t)hidden * sizeof *h;
    for (int32_t step = 0; step < params->steps; step++, x += params->inputs) {
        const int32_t input_groups = fill(values, x, params->inputs);
        begin_gates(params, values, input_groups, cells, gates);
        const int32_t state_groups = fill(values, h, hidden);
        end_gates(params, values, state_groups, cells, gates);
        update(params, gates, cells, h, c);
        if (params->last == 0) {
            memcpy(out, h, bytes);
            out += hidden;
        }
    }
    if (params->last != 0) {
        memcpy(out, h, bytes);
    }
}
