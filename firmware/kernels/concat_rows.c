#include "concat_rows.h"

#include "mcud_move.h"

/* The input's requantisation table, or NULL where its elements are copied. */
static const int8_t *table_of(const mcud_concat_rows_params *params, int32_t input)
{
    if (params->tables == NULL || params->table_of_input[input] == (uint32_t)params->table_count) {
        return NULL;
    }
    return params->tables + 256 * params->table_of_input[input];
}

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
        mcud_move(mcud_row(op->out, row), source, params->row_bytes, table_of(params, input));
    }
}
