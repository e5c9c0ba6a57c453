#include "lut_s16.h"

#include "mcud_table_s16.h"

void mcud_lut_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_lut_s16_params params = *(const mcud_lut_s16_params *)op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            out[i] = (int16_t)mcud_interpolate_s16(params.table, in[i]);
        }
    }
}
