#include "s16_to_f32.h"

void mcud_s16_to_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_s16_to_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = (float)in[i];
        }
    }
}
