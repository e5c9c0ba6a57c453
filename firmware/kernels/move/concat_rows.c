#include "concat_rows.h"

#include "mcud_move.h"

void mcud_concat_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_concat_rows_params *params = op->params;
    int32_t input = 0;
    int32_t start = 0; /* the output row at which the input begins */
    for (int32_t row = first_row; row < end_row; row++) {
        while (row - start >= (int32_t)params->rows[input]) {
            start += (int32_t)params->rows[input];
            input++;
        }
        const uint8_t *source = mcud_row(op->in[input], row - start);
        const int8_t *table =
            mcud_table(params->tables, params->table_of_input, params->table_count, input);
        mcud_move(mcud_row(op->out, row), source, params->row_bytes, table);
    }
}
