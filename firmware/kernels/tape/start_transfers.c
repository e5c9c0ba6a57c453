#include "start_transfers.h"

#include <string.h>

#include "mcud_dma.h"

__attribute__((weak)) void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes)
{
    (void)engine;
    memcpy(to, from, size_bytes);
}

void mcud_start_transfers(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_start_transfers_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint32_t bytes = params->bytes[row] & ~MCUD_ENDS_SOURCE;
        mcud_dma_start(params->engine, mcud_row(op->out, row), mcud_row(op->in[0], row), bytes);
#ifdef MCUD_DMA_SOFT
        if (bytes != params->bytes[row]) {
            mcud_dma_ends_source(params->engine);
        }
#endif
    }
}
