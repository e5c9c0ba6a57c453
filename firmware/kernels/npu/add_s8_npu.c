#include "add_s8_npu.h"

#include "mcud_npu_stream.h"

static int32_t crosses(const uint8_t *one, const uint8_t *other, uint32_t size_bytes)
{
    const uint8_t *const low = one < other ? one : other;
    const uint8_t *const high = one < other ? other : one;
    return low != high && low + size_bytes > high;
}

void mcud_add_s8_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_add_s8_npu_params *params = op->params;
    for (int32_t row = first_row; row < end_row;) {
        const int32_t end = mcud_npu_run_end(op->in[1], row, mcud_npu_run_end(op->in[0], row, end_row));
        const uint8_t *const a = mcud_row(op->in[0], row);
        const uint8_t *const b = mcud_row(op->in[1], row);
        const uint8_t *const out = mcud_row(op->out, row);
        const uint32_t size_bytes = (uint32_t)(end - row) * (uint32_t)params->row_bytes;
        if (crosses(a, out, size_bytes) || crosses(b, out, size_bytes)) {
            mcud_npu_by_core(op, params->core, row, end);
            row = end;
            continue;
        }
        mcud_npu_regions regions = {0};
        mcud_npu_set_region(&regions, MCUD_NPU_SOURCE, a, a + size_bytes);
        mcud_npu_set_region(&regions, MCUD_NPU_SECOND, b, b + size_bytes);
        mcud_npu_set_region(&regions, MCUD_NPU_OUTPUT, out, out + size_bytes);
        regions.writable = 1u << MCUD_NPU_OUTPUT;
        mcud_npu_stream stream;
        mcud_npu_begin(&stream, params->commands, params->command_words);
        mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE0, a, regions.base[MCUD_NPU_SOURCE]);
        mcud_npu_set_address(&stream, MCUD_NPU_IFM2_BASE0, b, regions.base[MCUD_NPU_SECOND]);
        mcud_npu_set_address(&stream, MCUD_NPU_OFM_BASE0, out, regions.base[MCUD_NPU_OUTPUT]);
        mcud_npu_set(&stream, MCUD_NPU_IFM_HEIGHT0_M1, end - row - 1);
        mcud_npu_set(&stream, MCUD_NPU_IFM2_HEIGHT0_M1, end - row - 1);
        mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT_M1, end - row - 1);
        mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT0_M1, end - row - 1);
        mcud_npu_finish(&stream, params->operation, &regions);
        row = end;
    }
}
