#include "resize_nearest.h"

#include "mcud_move.h"

void mcud_resize_nearest(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_nearest_params *params = op->params;
    const int32_t bytes = params->run_bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint8_t *in = mcud_row(op->in[0], params->rows[row]);
        uint8_t *target = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++) {
            mcud_move(target, in + params->cols[col] * bytes, bytes, params->table);
            target += bytes;
        }
    }
}
