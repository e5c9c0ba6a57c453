#include "gather_rows.h"

#include <string.h>

static int32_t row_of(int32_t index, int32_t rows)
{
    const int32_t row = index < 0 ? index + rows : index;
    if (row < 0) {
        return 0;
    }
    return row < rows ? row : rows - 1;
}

void mcud_gather_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_gather_rows_params *params = op->params;
    const int32_t *indices = mcud_row(op->in[0], 0);
    const void *table = params->floats != NULL ? (const void *)params->floats : params->bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t chosen = row_of(indices[row], params->rows);
        const void *source =
            table != NULL ? (const int8_t *)table + chosen * params->row_bytes : mcud_row(op->in[1], chosen);
        memcpy(mcud_row(op->out, row), source, (size_t)params->row_bytes);
    }
}
