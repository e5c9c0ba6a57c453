#include "run_streams_npu.h"

#include "mcud_npu_stream.h"

void mcud_run_streams_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_run_streams_npu_params *params = op->params;
    mcud_npu_regions regions = {0};
    mcud_npu_set_region(&regions, MCUD_NPU_CONSTANTS, (const uint8_t *)params->constants,
                        (const uint8_t *)params->constants + params->constant_bytes);
    for (int32_t i = 0; i < params->arenas_count; i++) {
        const uint8_t *const base = mcud_row(op->in[i], 0);
        mcud_npu_set_region(&regions, (int32_t)params->arenas[i].region, base, base + params->arenas[i].bytes);
        regions.writable = (uint8_t)(regions.writable | 1u << params->arenas[i].region);
    }
    regions.has_payload = 1u;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint32_t first = params->begins[row] + MCUD_NPU_PAYLOAD_WORDS;
        mcud_npu_start(params->words + first, params->begins[row + 1] - first, &regions);
    }
}
