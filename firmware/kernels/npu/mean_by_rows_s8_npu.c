#include "mean_by_rows_s8_npu.h"

#include "mcud_npu_stream.h"

void mcud_mean_by_rows_s8_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_mean_by_rows_s8_npu_params *params = op->params;
    int32_t held = mcud_npu_run_end(op->in[0], first_row, end_row);
    if (held < end_row) {
        held = mcud_npu_run_end(op->in[0], held, end_row);
    }
    if (end_row - first_row == params->input_rows && held == end_row) {
        mcud_npu_by_core(op, &params->calls[0], 0, 1);
    } else {
        mcud_npu_by_core(op, &params->calls[1], first_row, end_row);
    }
}
