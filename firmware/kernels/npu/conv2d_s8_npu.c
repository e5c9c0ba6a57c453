#include "conv2d_s8_npu.h"

#include <stddef.h>

#include "mcud_npu_stream.h"

enum { BLOCK_WORDS = 4 };

/* Input rows [first, end) of a step, in two runs: the second one from row `middle` on, or none if that is `end`. */
typedef struct {
    int32_t first;
    int32_t middle;
    int32_t end;
    int32_t above; /* rows of padding */
    int32_t below;
} input_rows;

static input_rows rows_read(const mcud_conv2d_s8_npu_params *params, int32_t first_row, int32_t end_row)
{
    const int32_t first = first_row * params->stride_rows - params->pad_top;
    const int32_t end = (end_row - 1) * params->stride_rows - params->pad_top + params->window_rows;
    const int32_t above = first < 0 ? -first : 0;
    const int32_t below = end > params->input_rows ? end - params->input_rows : 0;
    return (input_rows){first + above, 0, end - below, above, below};
}

/* Finds the runs; returns the row after the last one that two runs contain. */
static int32_t find_runs(const mcud_tensor *tensor, input_rows *rows)
{
    rows->middle = mcud_npu_run_end(tensor, rows->first, rows->end);
    return rows->middle < rows->end ? mcud_npu_run_end(tensor, rows->middle, rows->end) : rows->end;
}

/* Sets the block of `rows` rows of the output; its own rows are as even as possible. */
static void set_block(mcud_npu_stream *stream, const mcud_conv2d_s8_npu_params *params, int32_t rows)
{
    const uint32_t *const listed = params->commands + params->command_words;
    const uint32_t *const block = listed + BLOCK_WORDS * ((rows < params->blocks ? rows : params->blocks) - 1);
    const int32_t blocks = (rows + (int32_t)block[0] - 1) / (int32_t)block[0];
    const int32_t even = (rows + blocks - 1) / blocks + params->granule_rows - 1;
    for (uint32_t word = 1; word < BLOCK_WORDS; word++) {
        stream->words[stream->count++] = block[word];
    }
    mcud_npu_set(stream, MCUD_NPU_OFM_BLK_HEIGHT_M1, even - even % params->granule_rows - 1);
}

/* Runs the unit for output rows [first_row, end_row), which read `rows`. */
static void run_unit(const mcud_op *op, int32_t first_row, int32_t end_row, const input_rows *rows)
{
    const mcud_conv2d_s8_npu_params *params = op->params;
    const mcud_tensor *const source = op->in[0];
    const int32_t second = rows->middle < rows->end ? rows->middle : rows->first; /* without one, the first again */
    const uint8_t *const one = mcud_row(source, rows->first);
    const uint8_t *const other = mcud_row(source, second);
    const uint8_t *const one_end = one + (uint32_t)(rows->middle - rows->first) * source->row_bytes;
    const uint8_t *const other_end = other + (uint32_t)(rows->end - second) * source->row_bytes;
    const uint8_t *const out = mcud_row(op->out, first_row);

    mcud_npu_regions regions = {0};
    regions.base[MCUD_NPU_CONSTANTS] = (const uint8_t *)params->constants;
    regions.size_bytes[MCUD_NPU_CONSTANTS] = (uint32_t)params->constant_bytes;
    mcud_npu_set_region(&regions, MCUD_NPU_SOURCE, one < other ? one : other,
                        one_end > other_end ? one_end : other_end);
    mcud_npu_set_region(&regions, MCUD_NPU_OUTPUT, out, out + (end_row - first_row) * params->output_row_bytes);
    regions.writable = 1u << MCUD_NPU_OUTPUT;

    mcud_npu_stream stream;
    mcud_npu_begin(&stream, params->commands, params->command_words);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE0, one, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE2, other, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set(&stream, MCUD_NPU_IFM_HEIGHT0_M1, rows->middle - rows->first - 1);
    mcud_npu_set(&stream, MCUD_NPU_IFM_PAD_TOP, rows->above);
    mcud_npu_set(&stream, MCUD_NPU_IFM_PAD_BOTTOM, rows->below);
    mcud_npu_set_address(&stream, MCUD_NPU_OFM_BASE0, out, regions.base[MCUD_NPU_OUTPUT]);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT_M1, end_row - first_row - 1);
    mcud_npu_set(&stream, MCUD_NPU_OFM_HEIGHT0_M1, end_row - first_row - 1);
    set_block(&stream, params, end_row - first_row);
    mcud_npu_finish(&stream, params->operation, &regions);
}

void mcud_conv2d_s8_npu(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_npu_params *params = op->params;
    for (int32_t row = first_row; row < end_row;) {
        int32_t end = end_row;
        input_rows rows = rows_read(params, row, end);
        const int32_t held = find_runs(op->in[0], &rows);
        if (held < rows.end) { /* fewer output rows: those whose windows end in the two runs */
            const int32_t left = held + params->pad_top - params->window_rows - row * params->stride_rows;
            end = left < 0 ? row : row + left / params->stride_rows + 1;
        }
        if (end > row) {
            rows = rows_read(params, row, end);
            (void)find_runs(op->in[0], &rows);
            run_unit(op, row, end, &rows);
            row = end;
        } else if (params->core != NULL) {
            mcud_npu_by_core(op, params->core, row, row + 1);
            row++;
        } else {
            mcud_npu_failed(MCUD_NPU_UNSUPPORTED);
            return;
        }
    }
}
