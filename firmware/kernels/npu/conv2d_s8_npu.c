#include "conv2d_s8_npu.h"

#include <stddef.h>

#include "mcud_npu_stream.h"

enum { BLOCK_WORDS = 4 };

/* Input rows [first, end) of a step, in two runs: the second begins at row `middle`; there is none if `middle` is
 * `end`. */
typedef struct {
    int32_t first;
    int32_t middle;
    int32_t end;
    int32_t above; /* rows of padding */
    int32_t below;
    int32_t step; /* bytes from row to row of both runs; 0: rows are contiguous */
} input_rows;

static input_rows rows_read(const mcud_conv2d_s8_npu_params *params, int32_t first_row, int32_t end_row)
{
    const int32_t first = first_row * params->stride_rows - params->pad_top;
    const int32_t end = (end_row - 1) * params->stride_rows - params->pad_top + params->window_rows;
    const int32_t above = first < 0 ? -first : 0;
    const int32_t below = end > params->input_rows ? end - params->input_rows : 0;
    return (input_rows){first + above, 0, end - below, above, below, 0};
}

/* Finds two contiguous runs; returns the row after them. */
static int32_t find_runs(const mcud_tensor *tensor, input_rows *rows)
{
    rows->middle = mcud_npu_run_end(tensor, rows->first, rows->end);
    return rows->middle < rows->end ? mcud_npu_run_end(tensor, rows->middle, rows->end) : rows->end;
}

static int32_t distance(const mcud_tensor *tensor, int32_t row)
{
    return (int32_t)((const uint8_t *)mcud_row(tensor, row + 1) - (const uint8_t *)mcud_row(tensor, row));
}

static int32_t spaced_end(const mcud_tensor *tensor, int32_t row, int32_t end, int32_t step)
{
    while (row + 1 < end && distance(tensor, row) == step) {
        row++;
    }
    return row + 1;
}

/* Finds two runs with the distance between row `from` and the next row; 0 if there are none. Rows before `from`, if
 * any, are the first run. */
static int32_t find_spaced_from(const mcud_tensor *tensor, input_rows *rows, int32_t from)
{
    rows->step = distance(tensor, from);
    rows->middle = from > rows->first ? from : spaced_end(tensor, rows->first, rows->end, rows->step);
    return rows->middle == rows->end || spaced_end(tensor, rows->middle, rows->end, rows->step) == rows->end;
}

/* Finds two runs with one distance from row to row, in any order; 0 if there are none. Any three rows are two such runs. */
static int32_t find_spaced(const mcud_tensor *tensor, input_rows *rows)
{
    input_rows other = *rows;
    if (rows->end - rows->first < 3) {
        return 0;
    }
    const int32_t fits = find_spaced_from(tensor, rows, rows->first);
    if (fits != 0 && rows->step > 0) {
        return 1;
    }
    const int32_t other_fits = find_spaced_from(tensor, &other, other.first + 1);
    if (other_fits != 0 && (fits == 0 || other.step > 0)) {
        *rows = other;
    }
    return fits != 0 || other_fits != 0;
}

/* Sets the region of all input rows. */
static void set_source(mcud_npu_regions *regions, const mcud_tensor *source, const input_rows *rows)
{
    const uint8_t *begin = mcud_row(source, rows->first);
    const uint8_t *end = begin;
    for (int32_t row = rows->first; row < rows->end; row++) {
        const uint8_t *const at = mcud_row(source, row);
        begin = at < begin ? at : begin;
        end = at + source->row_bytes > end ? at + source->row_bytes : end;
    }
    mcud_npu_set_region(regions, MCUD_NPU_SOURCE, begin, end);
}

/* Sets the block of `rows` rows of the output; divides them as evenly as possible. */
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
    const int32_t second = rows->middle < rows->end ? rows->middle : rows->first; /* with one run, the first again */
    const uint8_t *const one = mcud_row(source, rows->first);
    const uint8_t *const other = mcud_row(source, second);
    const uint8_t *const out = mcud_row(op->out, first_row);

    mcud_npu_regions regions = {0};
    regions.base[MCUD_NPU_CONSTANTS] = (const uint8_t *)params->constants;
    regions.size_bytes[MCUD_NPU_CONSTANTS] = (uint32_t)params->constant_bytes;
    set_source(&regions, source, rows);
    mcud_npu_set_region(&regions, MCUD_NPU_OUTPUT, out, out + (end_row - first_row) * params->output_row_bytes);
    regions.writable = 1u << MCUD_NPU_OUTPUT;

    mcud_npu_stream stream;
    mcud_npu_begin(&stream, params->commands, params->command_words);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE0, one, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set_address(&stream, MCUD_NPU_IFM_BASE2, other, regions.base[MCUD_NPU_SOURCE]);
    mcud_npu_set(&stream, MCUD_NPU_IFM_HEIGHT0_M1, rows->middle - rows->first - 1);
    mcud_npu_set(&stream, MCUD_NPU_IFM_PAD_TOP, rows->above);
    mcud_npu_set(&stream, MCUD_NPU_IFM_PAD_BOTTOM, rows->below);
    if (rows->step != 0) {
        mcud_npu_set_distance(&stream, MCUD_NPU_IFM_STRIDE_Y, rows->step);
    }
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
        if (held < rows.end) { /* fewer output rows: only those whose windows are inside the two runs */
            const int32_t left = held + params->pad_top - params->window_rows - row * params->stride_rows;
            end = left < 0 ? row : row + left / params->stride_rows + 1;
        }
        if (end > row) {
            rows = rows_read(params, row, end);
            (void)find_runs(op->in[0], &rows);
            run_unit(op, row, end, &rows);
            row = end;
            continue;
        }
        rows = rows_read(params, row, row + 1);
        if (find_spaced(op->in[0], &rows) != 0) {
            run_unit(op, row, row + 1, &rows);
            row++;
        } else if (params->core != NULL) {
            mcud_npu_by_core(op, params->core, row, row + 1);
            row++;
        } else {
            mcud_npu_failed(MCUD_NPU_UNSUPPORTED);
            return;
        }
    }
}
