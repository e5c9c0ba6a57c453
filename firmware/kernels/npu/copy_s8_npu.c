#include "copy_s8_npu.h"

#include "mcud_npu_stream.h"

/* Runs the unit for one input and rows [row, end) of the output. */
static void run_unit(const mcud_op *op, int32_t input, int32_t row, int32_t end)
{
    const mcud_copy_s8_npu_params *params = op->params;
    const mcud_tensor *const source = op->in[input];
    const uint8_t *const in = mcud_row(source, row + params->first_row);
    const uint8_t *const out = mcud_row(op->out, row);
    mcud_npu_regions regions = {0};
    mcud_npu_set_region(&regions, MCUD_NPU_SOURCE, in, in + (uint32_t)(end - row) * source->row_bytes);
    mcud_npu_set_region(&regions, MCUD_NPU_OUTPUT, out, out + (end - row) * params->output_row_bytes);
    regions.writable = 1u << MCUD_NPU_OUTPUT;

    mcud_npu_stream stream;
    mcud_npu_begin(&stream, params->commands + input * params->command_words, params->command_words);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE0, in + params->read_at, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set(&stream, MCUD_NPU_IFM_HEIGHT0_M1, end - row - 1);
    mcud_npu_set_address(&stream, MCUD_NPU_OFM_BASE0, out + params->written_at[input],
                         regions.base[MCUD_NPU_OUTPUT]);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT_M1, end - row - 1);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT0_M1, end - row - 1);
    mcud_npu_finish(&stream, params->operation, &regions);
}

void mcud_copy_s8_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_copy_s8_npu_params *params = op->params;
    const int32_t first = params->first_row;
    for (int32_t input = 0; input < params->inputs; input++) {
        for (int32_t row = first_row; row < end_row;) {
            const int32_t end = mcud_npu_run_end(op->in[input], row + first, end_row + first) - first;
            run_unit(op, input, row, end);
            row = end;
        }
    }
}
