#include "conv2d_s8_npu.h"

#include <stddef.h>
#include <string.h>

#include "mcud_npu.h"

#define STOP 0xFFFF0000u

enum { SOURCE = 1, OUTPUT = 2, ALIGNMENT = 16, OWN_COMMANDS = 13 };

/* Commands that set registers; those of addresses have a second word. */
enum {
    SET_IFM_PAD_TOP = 0x100,
    SET_IFM_PAD_BOTTOM = 0x103,
    SET_IFM_HEIGHT0_M1 = 0x10B,
    SET_OFM_HEIGHT_M1 = 0x112,
    SET_OFM_HEIGHT0_M1 = 0x11B,
    SET_IFM_BASE0 = 0x4000,
    SET_IFM_BASE2 = 0x4002,
    SET_OFM_BASE0 = 0x4010,
};

__attribute__((weak)) void mcud_npu_failed(int32_t code)
{
    (void)code;
    __builtin_trap();
}

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

/* The row after the longest run of rows that lie one after another, also over several blocks. */
static int32_t run_end(const mcud_tensor *tensor, int32_t row, int32_t end)
{
    int32_t after = mcud_run_end(tensor, row, end);
    uint8_t *const begin = mcud_row(tensor, row);
    while (after < end && mcud_row(tensor, after) == begin + (uint32_t)(after - row) * tensor->row_bytes) {
        after = mcud_run_end(tensor, after, end);
    }
    return after;
}

/* Finds the runs; returns the row after the last one that two runs contain. */
static int32_t find_runs(const mcud_tensor *tensor, input_rows *rows)
{
    rows->middle = run_end(tensor, rows->first, rows->end);
    return rows->middle < rows->end ? run_end(tensor, rows->middle, rows->end) : rows->end;
}

/* Makes rows of a tensor a region: [begin, end), whose base is aligned. */
static void set_region(mcud_npu_regions *regions, int32_t number, const uint8_t *begin, const uint8_t *end)
{
    regions->base[number] = begin - (uintptr_t)begin % ALIGNMENT;
    regions->size_bytes[number] = (uint32_t)(end - regions->base[number]);
}

static uint32_t *set(uint32_t *words, uint32_t command, int32_t value)
{
    *words = command | (uint32_t)value << 16;
    return words + 1;
}

static uint32_t *set_address(uint32_t *words, uint32_t command, const uint8_t *at, const uint8_t *base)
{
    words[0] = command;
    words[1] = (uint32_t)(at - base);
    return words + 2;
}

/* Runs the unit for output rows [first_row, end_row), which read `rows`. */
static int32_t run_unit(const mcud_op *op, int32_t first_row, int32_t end_row, const input_rows *rows)
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
    regions.base[0] = (const uint8_t *)params->constants;
    regions.size_bytes[0] = (uint32_t)params->constant_bytes;
    set_region(&regions, SOURCE, one < other ? one : other, one_end > other_end ? one_end : other_end);
    set_region(&regions, OUTPUT, out, out + (end_row - first_row) * params->output_row_bytes);
    regions.writable = 1u << OUTPUT;

    uint32_t stream[MCUD_NPU_MOST_COMMANDS + OWN_COMMANDS] MCUD_ALIGNED(ALIGNMENT);
    memcpy(stream, params->commands, (uint32_t)params->command_words * sizeof *stream);
    uint32_t *words = stream + params->command_words;
    words = set_address(words, SET_IFM_BASE0, one, regions.base[SOURCE]);
    words = set_address(words, SET_IFM_BASE2, other, regions.base[SOURCE]);
    words = set(words, SET_IFM_HEIGHT0_M1, rows->middle - rows->first - 1);
    words = set(words, SET_IFM_PAD_TOP, rows->above);
    words = set(words, SET_IFM_PAD_BOTTOM, rows->below);
    words = set_address(words, SET_OFM_BASE0, out, regions.base[OUTPUT]);
    words = set(words, SET_OFM_HEIGHT_M1, end_row - first_row - 1);
    words = set(words, SET_OFM_HEIGHT0_M1, end_row - first_row - 1);
    words = set(words, (uint32_t)params->operation, 0);
    *words++ = STOP;
    return mcud_npu_run(stream, (uint32_t)(words - stream), &regions);
}

/* Computes one output row by the core. */
static void run_core(const mcud_op *op, const mcud_stage_call *call, int32_t row)
{
    mcud_op core = *op;
    core.kernel = call->kernel;
    core.params = call->params;
    core.kernel(&core, row, row + 1);
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
        if (end == row) {
            if (params->core == NULL) {
                mcud_npu_failed(MCUD_NPU_UNSUPPORTED);
                return;
            }
            run_core(op, params->core, row);
            row++;
            continue;
        }
        rows = rows_read(params, row, end);
        (void)find_runs(op->in[0], &rows);
        const int32_t fault = run_unit(op, row, end, &rows);
        if (fault != MCUD_NPU_DONE) {
            mcud_npu_failed(fault);
        }
        row = end;
    }
}
