#include "s32_to_s16.h"

void mcud_s32_to_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_s32_to_s16_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = (int16_t)(uint16_t)(uint32_t)in[i];
        }
    }
}
