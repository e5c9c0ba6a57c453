/* Several operators in a chain, with only some rows of the tensors between them, in scratch. The results equal those of
 * separate operators bit for bit.
 *
 * A pass computes `batch_rows` rows of the output. Stage by stage, it computes the rows that later stages need, except
 * those that earlier passes of the call have left in scratch. With several groups of channels, a pass runs all stages
 * for each group in turn; the last stage then adds the products of the group to sums (conv2d_s8_1x1_sums).
 *
 * in[0]    the input of the first stage
 * out      the output of the last stage
 * scratch  rings of rows, the sums, and at `work_at` the scratch of the stage that runs
 */
#ifndef MCUD_FUSED_ROWS_H
#define MCUD_FUSED_ROWS_H

#include "mcud.h"

enum { MCUD_MOST_STAGES = 8 };

/* The rows of a stage. Its row r depends on rows [stride * r + lo, stride * r + hi) of the previous stage. */
typedef struct {
    int32_t rows;
    int32_t stride;
    int32_t lo;
    int32_t hi;
    int32_t slots;          /* rows of its output in scratch; 0 for the last stage */
    int32_t row_bytes;      /* of its output */
    int32_t last_row_bytes; /* the same in the last group, which may have fewer channels */
    int32_t at;             /* offset in scratch of its output, or of the sums */
} mcud_stage;

typedef struct {
    const mcud_stage_call *calls; /* [group_count][stage_count] */
    const uint32_t *stages;       /* mcud_stage [stage_count] */
    int32_t stage_count;          /* 2..MCUD_MOST_STAGES */
    int32_t group_count;
    int32_t batch_rows;
    int32_t summed_pixels; /* pixels of an output row, if the last stage sums groups; else 0 */
    int32_t work_at;
} mcud_fused_rows_params;

mcud_kernel mcud_fused_rows;

#endif
