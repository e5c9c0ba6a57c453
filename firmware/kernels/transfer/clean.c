#include "clean.h"

#include <string.h>

#include "mcud_cache.h"

__attribute__((weak)) void mcud_cache_clean(const void *address, uint32_t bytes)
{
    (void)address;
    (void)bytes;
}

void mcud_clean(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_clean_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint8_t *in = mcud_row(op->in[0], row);
        uint8_t *out = mcud_row(op->out, row);
        if (out != in) {
            memcpy(out, in, (size_t)params->row_bytes);
        }
    }
    /* The rows of a step are one block: they are contiguous. */
    mcud_cache_clean(mcud_row(op->out, first_row), (uint32_t)(end_row - first_row) * (uint32_t)params->row_bytes);
}
