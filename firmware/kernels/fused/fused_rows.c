#include "fused_rows.h"

/* Block offsets of a tensor in scratch, whose memory is its own address. */
static const mcud_offset at_its_begin[2] = {0, 0};

/* The first rows that a stage computes and needs in a pass, and the row after the last one. `of_call`: the first row
 * that the call of the fused operator computes. `is_last`: the pass has the last group of channels. */
typedef struct {
    int32_t of_call;
    int32_t is_last;
    int32_t first;
    int32_t needed;
    int32_t end;
} stage_rows;

/* A ring of rows in scratch with row `base` in the first slot: mcud_row() finds rows [base, base + 2 * slots). */
static mcud_tensor ring(const mcud_stage *stage, int32_t is_last, uint8_t *scratch, int32_t base)
{
    const mcud_tensor tensor = {
        .memory = scratch + stage->at,
        .offsets = at_its_begin,
        .row_bytes = (uint32_t)(is_last ? stage->last_row_bytes : stage->row_bytes),
        .block_rows = (uint32_t)stage->slots,
        .lead = 0u - (uint32_t)base,
    };
    return tensor;
}

/* The row in the first slot while `row` is in the ring; `origin` was in the first slot before. */
static int32_t base_of(int32_t row, int32_t origin, int32_t slots)
{
    return row - (row - origin) % slots;
}

/* Calls a stage on runs of rows that are contiguous in the ring of its output and in that of its input. */
static void run_stage(const mcud_op *op, int32_t number, const mcud_stage_call *call, const stage_rows *rows,
                      const int32_t *origins)
{
    uint8_t *const scratch = mcud_row(op->scratch, rows->of_call);
    const mcud_fused_rows_params *params = op->params;
    const mcud_stage *const stages = (const mcud_stage *)params->stages;
    const mcud_stage *const stage = stages + number;
    const mcud_tensor work = {scratch + params->work_at, at_its_begin, 0, MCUD_WHOLE, 0};
    mcud_tensor source;
    mcud_tensor target;
    const mcud_tensor *in[1] = {op->in[0]};
    mcud_op own = {call->kernel, call->params, in, op->out, &work, (uint32_t)stage->rows, 1u};
    if (number > 0) {
        in[0] = &source;
    }
    if (stage->slots > 0) {
        own.out = &target;
    }
    for (int32_t row = rows->first; row < rows->end;) {
        int32_t end = rows->end;
        if (stage->slots > 0) {
            const int32_t base = base_of(row, origins[number], stage->slots);
            target = ring(stage, rows->is_last, scratch, base);
            end = base + stage->slots < end ? base + stage->slots : end;
        }
        if (number > 0) {
            const int32_t lo = stage->stride * row + stage->lo;
            const int32_t slots = stages[number - 1].slots;
            const int32_t base = base_of(lo > 0 ? lo : 0, origins[number - 1], slots);
            source = ring(stages + number - 1, rows->is_last, scratch, base);
        }
        call->kernel(&own, row, end);
        row = end;
    }
}

/* Adds a group's products to the sums of the pass' pixels. */
static void run_sums(const mcud_op *op, int32_t group, const mcud_stage_call *call, const stage_rows *rows)
{
    uint8_t *const scratch = mcud_row(op->scratch, rows->of_call);
    const mcud_fused_rows_params *params = op->params;
    const mcud_stage *const last = (const mcud_stage *)params->stages + params->stage_count - 1;
    const mcud_tensor source = {scratch + last[-1].at, at_its_begin, 0, MCUD_WHOLE, 0};
    const mcud_tensor target = {mcud_row(op->out, rows->first), at_its_begin, 0, MCUD_WHOLE, 0};
    const mcud_tensor sums = {scratch + last->at, at_its_begin, 0, MCUD_WHOLE, 0};
    const mcud_tensor *const in[1] = {&source};
    const uint32_t pixels = (uint32_t)((rows->end - rows->first) * params->summed_pixels);
    const mcud_op own = {call->kernel, call->params, in, &target, &sums, pixels, 1u};
    call->kernel(&own, group, group + 1);
}

void mcud_fused_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_fused_rows_params *params = op->params;
    const mcud_stage *const stages = (const mcud_stage *)params->stages;
    const int32_t last = params->stage_count - 1;
    const int sums = params->summed_pixels > 0;
    stage_rows rows[MCUD_MOST_STAGES];
    int32_t origins[MCUD_MOST_STAGES];
    for (int32_t i = 0; i <= last; i++) {
        rows[i].of_call = first_row;
        rows[i].end = 0;
        origins[i] = -1;
    }
    for (int32_t row = first_row; row < end_row; row += params->batch_rows) {
        rows[last].first = row;
        rows[last].needed = row;
        rows[last].end = end_row - row < params->batch_rows ? end_row : row + params->batch_rows;
        for (int32_t i = last - 1; i >= 0; i--) {
            const mcud_stage *const reader = stages + i + 1;
            const int32_t lo = reader->stride * rows[i + 1].needed + reader->lo;
            const int32_t hi = reader->stride * (rows[i + 1].end - 1) + reader->hi;
            rows[i].needed = lo > 0 ? lo : 0;
            rows[i].first = sums || rows[i].end < rows[i].needed ? rows[i].needed : rows[i].end;
            rows[i].end = hi < stages[i].rows ? hi : stages[i].rows;
            origins[i] = sums || origins[i] < 0 ? rows[i].first : origins[i];
        }
        for (int32_t group = 0; group < params->group_count; group++) {
            const mcud_stage_call *call = params->calls + group * params->stage_count;
            for (int32_t i = 0; i <= last; i++) {
                rows[i].is_last = group == params->group_count - 1;
            }
            for (int32_t i = 0; i < last; i++, call++) {
                run_stage(op, i, call, rows + i, origins);
            }
            if (sums) {
                run_sums(op, group, call, rows + last);
            } else {
                run_stage(op, last, call, rows + last, origins);
            }
        }
    }
}
