#include "stream_constants.h"

#include "mcud_dma.h"

static void load(const mcud_stream_constants_params *params, uint32_t piece)
{
    uint8_t *half = params->to + piece % 2u * params->half_bytes;
    const uint32_t is_last = piece + 1u == params->pieces;
    for (uint32_t array = 0; array < params->arrays; array++) {
        const uint32_t *sizes = params->sizes + 3u * array;
        const uint8_t *from = (const uint8_t *)params->from[array] + piece * sizes[0];
        mcud_dma_start(params->engine, half + sizes[2], from, sizes[is_last]);
    }
}

void mcud_stream_constants(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_stream_constants_params *params = op->params;
    load(params, 0);
    for (uint32_t piece = 0; piece < params->pieces; piece++) {
        const uint32_t more = piece + 1u < params->pieces;
        if (more) {
            load(params, piece + 1u);
        }
        mcud_dma_wait(params->engine, more ? params->arrays : 0u);
        const mcud_stage_call *call = &params->calls[more ? piece % 2u : 2u];
        mcud_tensor out = *op->out;
        out.memory += piece * params->out_bytes;
        const mcud_op part = {call->kernel, call->params, op->in, &out, op->scratch, op->rows, op->block_rows};
        call->kernel(&part, first_row, end_row);
    }
}
