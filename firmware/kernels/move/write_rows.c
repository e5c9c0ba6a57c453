#include "write_rows.h"

#include <stddef.h>
#include <string.h>

void mcud_write_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_write_rows_params *params = op->params;
    const mcud_tensor *const *in = op->in;
    const int32_t *positions = params->positions != NULL ? params->positions : mcud_row(*in++, first_row);
    const uint8_t *rows = mcud_row(in[0], first_row);
    const uint8_t *state = mcud_row(in[1], first_row);
    uint8_t *out = mcud_row(op->out, first_row);
    const size_t row_bytes = (size_t)params->row_bytes;
    const size_t block_bytes = (size_t)params->rows * row_bytes;
    if (out != state) {
        memcpy(out, state, (size_t)params->blocks * block_bytes);
    }
    for (int32_t i = 0; i < params->count; i++) {
        const int32_t position = positions[i] < 0 ? positions[i] + params->rows : positions[i];
        if (position < 0 || position >= params->rows) {
            continue;
        }
        const uint8_t *from = rows + (size_t)i * row_bytes;
        uint8_t *to = out + (size_t)position * row_bytes;
        for (int32_t block = 0; block < params->blocks; block++) {
            memcpy(to, from, row_bytes);
            from += (size_t)params->count * row_bytes;
            to += block_bytes;
        }
    }
}
