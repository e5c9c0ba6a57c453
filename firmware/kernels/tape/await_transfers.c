#include "await_transfers.h"

#include "mcud_dma.h"

__attribute__((weak)) void mcud_dma_wait(uint32_t engine, uint32_t pending)
{
    (void)engine;
    (void)pending;
}

void mcud_await_transfers(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_await_transfers_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        mcud_dma_wait(params->engine, params->pending[row]);
    }
}
