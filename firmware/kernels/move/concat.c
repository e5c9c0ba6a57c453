#include "concat.h"

#include "mcud_move.h"

void mcud_concat(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_concat_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        uint8_t *start = mcud_row(op->out, row);
        for (int32_t input = 0; input < params->inputs; input++) {
            const int32_t bytes = (int32_t)params->run_bytes[input];
            const int8_t *table =
                mcud_table(params->tables, params->table_of_input, params->table_count, input);
            const uint8_t *source = mcud_row(op->in[input], row);
            uint8_t *target = start;
            for (int32_t run = 0; run < params->runs; run++) {
                mcud_move(target, source, bytes, table);
                source += bytes;
                target += params->out_run_bytes;
            }
            start += bytes;
        }
    }
}
