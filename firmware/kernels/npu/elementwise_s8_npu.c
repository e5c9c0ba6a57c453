#include "elementwise_s8_npu.h"

#include <stddef.h>

#include "mcud_npu_stream.h"

typedef struct {
    const uint8_t *begin;
    uint32_t size_bytes;
} byte_range;

/* Whether the ranges overlap, but are not equal. */
static int32_t crosses(byte_range one, byte_range other)
{
    const int32_t apart = one.begin + one.size_bytes <= other.begin || other.begin + other.size_bytes <= one.begin;
    return !apart && (one.begin != other.begin || one.size_bytes != other.size_bytes);
}

/* The second operand of rows [row, end): empty where the commands contain it. */
static byte_range second_rows(const mcud_op *op, int32_t row, int32_t end)
{
    const mcud_elementwise_s8_npu_params *params = op->params;
    const int32_t own = params->second_row_bytes != 0 ? row : 0;
    const int32_t rows = params->second_row_bytes != 0 ? end - row : 1;
    const uint8_t *begin = NULL;
    if (params->second_bytes != 0) {
        begin = params->constants != NULL ? (const uint8_t *)params->constants + own * params->second_row_bytes
                                          : mcud_row(op->in[1 - params->first], own);
    }
    return (byte_range){begin, (uint32_t)(rows * params->second_bytes)};
}

static void run_unit(const mcud_op *op, int32_t row, int32_t end, byte_range second)
{
    const mcud_elementwise_s8_npu_params *params = op->params;
    const uint8_t *const first = mcud_row(op->in[params->first], row);
    const uint8_t *const out = mcud_row(op->out, row);
    const uint32_t size_bytes = (uint32_t)(end - row) * (uint32_t)params->row_bytes;
    const int32_t number = params->constants != NULL ? MCUD_NPU_CONSTANTS : MCUD_NPU_SECOND;

    mcud_npu_regions regions = {0};
    mcud_npu_set_region(&regions, MCUD_NPU_SOURCE, first, first + size_bytes);
    mcud_npu_set_region(&regions, MCUD_NPU_OUTPUT, out, out + size_bytes);
    if (params->constants != NULL) {
        const uint8_t *const constants = (const uint8_t *)params->constants;
        mcud_npu_set_region(&regions, number, constants, constants + params->constant_bytes);
    } else if (second.size_bytes != 0u) {
        mcud_npu_set_region(&regions, number, second.begin, second.begin + second.size_bytes);
    }
    regions.writable = 1u << MCUD_NPU_OUTPUT;

    mcud_npu_stream stream;
    mcud_npu_begin(&stream, params->commands, params->command_words);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE0, first, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set(&stream, MCUD_NPU_IFM_HEIGHT0_M1, end - row - 1);
    if (second.size_bytes != 0u) {
        mcud_npu_set_address(&stream, MCUD_NPU_IFM2_BASE0, second.begin, regions.base[number]);
        mcud_npu_set(&stream, MCUD_NPU_IFM2_HEIGHT0_M1, params->second_row_bytes != 0 ? end - row - 1 : 0);
    }
    mcud_npu_set_address(&stream, MCUD_NPU_OFM_BASE0, out, regions.base[MCUD_NPU_OUTPUT]);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT_M1, end - row - 1);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT0_M1, end - row - 1);
    mcud_npu_finish(&stream, params->operation, &regions);
}

void mcud_elementwise_s8_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_elementwise_s8_npu_params *params = op->params;
    const int32_t two_runs = params->second_row_bytes != 0 && params->constants == NULL;
    for (int32_t row = first_row; row < end_row;) {
        int32_t end = mcud_npu_run_end(op->in[params->first], row, end_row);
        if (two_runs) {
            end = mcud_npu_run_end(op->in[1 - params->first], row, end);
        }
        const uint32_t size_bytes = (uint32_t)(end - row) * (uint32_t)params->row_bytes;
        const byte_range first = {mcud_row(op->in[params->first], row), size_bytes};
        const byte_range out = {mcud_row(op->out, row), size_bytes};
        const byte_range second = second_rows(op, row, end);
        if (crosses(first, out) || (second.size_bytes != 0u && crosses(second, out))) {
            mcud_npu_by_core(op, params->core, row, end);
        } else {
            run_unit(op, row, end, second);
        }
        row = end;
    }
}
