/* mcud_lstm_s16.h in portable C. */
#ifndef MCUD_LSTM_S16_C_H
#define MCUD_LSTM_S16_C_H

/* Adds the products with x[depth] to the gates[MCUD_GATES][cells], which are narrowed to 16 bits. */
static inline void mcud_lstm_product(const mcud_lstm_weights *from, const int8_t *x, int32_t depth, int32_t cells,
                                     int16_t *gates)
{
    const int32_t *w = from->weights;
    const int32_t *bias = from->biases;
    for (int32_t gate = 0; gate < MCUD_GATES; gate++) {
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

/* Computes the next states of all cells from gates[MCUD_GATES][cells]. */
static inline void mcud_lstm_update(const mcud_lstm_cells *by, const int16_t *gates, int32_t cells, int8_t *h,
                                    int16_t *c)
{
    enum { NARROW = 15 }; /* fraction bits of the logistic function and of tanh */
    const mcud_lstm_cells p = *by;
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

#endif
