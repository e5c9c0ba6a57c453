#include "s32_to_s8.h"

void mcud_s32_to_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_s32_to_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = (int8_t)(uint8_t)(uint32_t)in[i];
        }
    }
}
