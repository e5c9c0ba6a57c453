#include "dwconv2d_s8_rows_mve.h"

#include <stddef.h>

#include "mcud_clip_s8.h"
#include "mcud_four_rows_s8.h"

enum { MOST_BLOCKS = 8, ROWS = 4, CHANNELS = 16 };

/* The input of the blocks of some outputs. */
typedef struct {
    const int8_t *rows[MOST_BLOCKS * ROWS]; /* the first column inside the input; NULL in the padding */
    int32_t next;                           /* from a block's first row to the next block's: blocks share rows */
    int8_t *columns;                        /* of the first block: its columns inside the input */
    int32_t inside;                         /* the number of such columns of a block */
    int32_t pitch;                          /* bytes from a block's columns to the next one's */
} windows;

static inline int32_t between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* Finds the rows of blocks, four for each. A window has three rows, so the last of the four may be padding. */
static void find_rows(const mcud_op *op, int32_t row, const mcud_four_rows_outputs *by, int32_t first, windows *of)
{
    const mcud_dwconv2d_s8_rows_mve_params *params = op->params;
    const int32_t step = by->rows * params->window.stride_rows;
    const int32_t top = row * params->window.stride_rows - params->window.pad_top;
    const int32_t last = top + (by->blocks - 1) * step + by->rows + 1;
    const int32_t end = last < params->dims.input_rows ? last + 1 : params->dims.input_rows;
    of->next = step < ROWS ? step : ROWS;
    for (int32_t block = 0; block < by->blocks; block++) {
        for (int32_t i = block > 0 ? ROWS - of->next : 0; i < ROWS; i++) {
            const int32_t at = top + block * step + i;
            const int is_inside = at >= 0 && at < end;
            of->rows[block * of->next + i] =
                is_inside ? (const int8_t *)mcud_row(op->in[0], at) + first * params->dims.channels : NULL;
        }
    }
}

/* Interleaves the channels from `channel` on, in all blocks. */
static void interleave(const mcud_dwconv2d_s8_rows_mve_params *params, const windows *of, int32_t channel,
                       const mcud_four_rows_outputs *by)
{
    mcud_rows_of_four rows = {.channels = by->channels};
    int8_t *to = of->columns;
    for (int32_t block = 0, row = 0; block < by->blocks; block++, row += of->next, to += of->pitch) {
        for (int32_t i = 0; i < ROWS; i++) {
            const int8_t *const at = of->rows[row + i];
            rows.at[i] = (at != NULL ? at : params->padding) + channel;
            rows.step[i] = at != NULL ? params->dims.channels : 0;
        }
        mcud_interleave_rows(to, &rows, of->inside);
    }
}

/* Computes outputs [col, col + outputs) of rows [first_row, end_row). */
static void outputs_in_columns(const mcud_op *op, int32_t first_row, int32_t end_row, int32_t col, int32_t outputs)
{
    const mcud_dwconv2d_s8_rows_mve_params *params = op->params;
    const mcud_plane_dims *dims = &params->dims;
    const int32_t stride = params->window.stride_cols;
    const int32_t left = col * stride - params->window.pad_left;
    const int32_t right = left + (outputs - 1) * stride + 3;
    const int32_t first = between(0, left, right);
    const int32_t inside = between(dims->input_cols, first, right) - first;
    const int32_t pair = stride == 1 && params->window.stride_rows == 1 ? 2 : 1;
    const int32_t pitch = params->columns * MCUD_FOUR_ROWS;
    const int32_t most = between((end_row - first_row) / pair, 1, params->most_blocks);
    int8_t *const x = mcud_row(op->scratch, first_row);
    windows of = {.columns = x + (first - left) * MCUD_FOUR_ROWS, .inside = inside, .pitch = pitch};
    for (int8_t *block = x; block < x + most * pitch; block += pitch) {
        mcud_vector_fill(block, params->padding[0], (first - left) * MCUD_FOUR_ROWS);
        mcud_vector_fill(block + (first - left + inside) * MCUD_FOUR_ROWS, params->padding[0],
                         (right - first - inside) * MCUD_FOUR_ROWS);
    }
    mcud_four_rows_outputs by = {.x = x, .columns = params->columns, .outputs = outputs, .pitch = dims->channels,
                                 .row = dims->output_cols * dims->channels, .zero_point = params->quant.zero_point};
    for (int32_t row = first_row; row < end_row; row += by.blocks * by.rows) {
        by.rows = end_row - row < pair ? 1 : pair;
        by.blocks = between((end_row - row) / by.rows, 1, most);
        find_rows(op, row, &by, first, &of);
        by.y = (int8_t *)mcud_row(op->out, row) + col * dims->channels;
        by.records = params->packed_weights;
        for (int32_t channel = 0; channel < dims->channels; channel += CHANNELS) {
            by.channels = between(dims->channels - channel, 1, CHANNELS);
            interleave(params, &of, channel, &by);
            mcud_four_rows_s8(&by, stride);
            by.y += CHANNELS;
            by.records += CHANNELS * MCUD_FOUR_RECORD;
        }
    }
}

void mcud_dwconv2d_s8_rows_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_rows_mve_params *params = op->params;
    for (int32_t col = 0; col < params->dims.output_cols; col += params->most_outputs) {
        outputs_in_columns(op, first_row, end_row, col,
                           between(params->dims.output_cols - col, 0, params->most_outputs));
    }
    mcud_clip_s8(mcud_row(op->out, first_row), (end_row - first_row) * params->dims.output_cols * params->dims.channels,
                 params->act.min, params->act.max);
}
