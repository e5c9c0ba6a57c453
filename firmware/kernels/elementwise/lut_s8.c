#include "lut_s8.h"

#include "mcud_bytes.h"

void mcud_lut_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_lut_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        mcud_look_up(mcud_row(op->out, row), mcud_row(op->in[0], row), params->row_elements, params->table);
    }
}
