#include "copy.h"

#include <string.h>

void mcud_copy(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_copy_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        memcpy(mcud_row(op->out, row), mcud_row(op->in[0], row), (size_t)params->row_bytes);
    }
}
