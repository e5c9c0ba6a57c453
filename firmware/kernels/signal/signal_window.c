#include "signal_window.h"

void mcud_signal_window(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_signal_window_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->count; i++) {
            const int32_t product = (in[i] * params->weights[i]) >> params->shift;
            out[i] = (int16_t)(product < INT16_MIN ? INT16_MIN : (product > INT16_MAX ? INT16_MAX : product));
        }
    }
}
