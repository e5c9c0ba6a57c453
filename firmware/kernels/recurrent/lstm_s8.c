#include "lstm_s8.h"

#include <string.h>

#include "mcud_lstm_s16.h"

void mcud_lstm_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_lstm_s8_params *params = op->params;
    const int32_t hidden = params->hidden;
    const int32_t cells = (hidden + 3) / 4 * 4;
    const mcud_lstm_weights inputs = {params->input_weights, params->biases, params->scales};
    const mcud_lstm_weights states = {params->recurrent_weights, params->biases + MCUD_GATES * cells,
                                      params->scales + 2 * MCUD_GATES};
    const mcud_lstm_cells update = {hidden, params->cell_bits, params->cell_clip, params->multiplier, params->exponent,
                                    params->zero_point};
    const int8_t *x = mcud_row(op->in[0], first_row);
    int8_t *h = mcud_row(op->in[1], first_row);
    int16_t *c = mcud_row(op->in[2], first_row);
    int16_t *gates = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    for (int32_t step = 0; step < params->steps; step++, x += params->inputs) {
        memset(gates, 0, (size_t)(MCUD_GATES * cells) * sizeof *gates);
        mcud_lstm_product(&inputs, x, params->inputs, cells, gates);
        mcud_lstm_product(&states, h, hidden, cells, gates);
        mcud_lstm_update(&update, gates, cells, h, c);
        if (params->last == 0) {
            memcpy(out, h, (size_t)hidden);
            out += hidden;
        }
    }
    if (params->last != 0) {
        memcpy(out, h, (size_t)hidden);
    }
}
