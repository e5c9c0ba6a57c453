#include "invalidate.h"

#include <string.h>

#include "mcud_cache.h"

__attribute__((weak)) void mcud_cache_invalidate(const void *address, uint32_t bytes)
{
    (void)address;
    (void)bytes;
}

void mcud_invalidate(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_invalidate_params *params = op->params;
    for (int32_t row = first_row; row < end_row;) {
        const int32_t end = mcud_run_end(op->in[0], row, end_row);
        const uint32_t bytes = (uint32_t)(end - row) * (uint32_t)params->row_bytes;
        const uint8_t *in = mcud_row(op->in[0], row);
        uint8_t *out = mcud_row(op->out, row);
        mcud_cache_invalidate(in, bytes);
        if (out != in) {
            memcpy(out, in, bytes);
        }
        row = end;
    }
}
