#include "lut_s8.h"

void mcud_lut_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_lut_s8_params *params = op->params;
    const int8_t *middle = params->table + 128;
    const int32_t count = params->row_elements;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < count; i++) {
            out[i] = middle[in[i]];
        }
    }
}
