#include "gather_rows.h"

#include <string.h>

#include "mcud_nearest_row.h"

void mcud_gather_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_gather_rows_params *params = op->params;
    const int32_t *indices = mcud_row(op->in[0], 0);
    const void *table = params->floats != NULL ? (const void *)params->floats : params->bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t chosen = mcud_nearest_row(indices[row], params->rows);
        const void *source =
            table != NULL ? (const int8_t *)table + chosen * params->row_bytes : mcud_row(op->in[1], chosen);
        memcpy(mcud_row(op->out, row), source, (size_t)params->row_bytes);
    }
}
