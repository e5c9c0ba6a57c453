#include "dwconv2d_s8_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_row_pairs_s8.h"

/* Rows of the output that are computed for four channels before the next four, and the input rows under them. */
enum { MOST_ROWS = 16, MOST_INPUT_ROWS = MOST_ROWS + 2 };

/* The windows of several rows, in some columns. */
typedef struct {
    const int8_t *rows[MOST_INPUT_ROWS]; /* the first column inside the input; NULL in the padding */
    const int32_t *x; /* all columns, expanded */
    int32_t *columns; /* the expanded columns inside the input */
    int32_t inside;   /* their number */
    int32_t channel;  /* the first one of up to four */
    int32_t padding;  /* four times the zero point */
    int32_t step;     /* from a column to the next one */
    int32_t stride_rows;
    int32_t stride_cols;
    mcud_pair_outputs by;
} windows;

static inline mcud_pair_row row_at(const windows *of, int32_t row)
{
    const int8_t *const at = of->rows[row];
    return at != NULL ? (mcud_pair_row){at + of->channel, of->step} : (mcud_pair_row){(const int8_t *)&of->padding, 0};
}

/* Expands rows `row` and `row` + 1 to word `word` of every column. */
static void expand_pair(const windows *of, int32_t row, int32_t word)
{
    mcud_expand_pair(of->columns + word, row_at(of, row), row_at(of, row + 1), of->inside, of->by.channels);
}

/* Computes outputs of two rows at a time; returns the number of computed rows, which is even. */
static int32_t pairs_of_rows(const windows *of, int32_t rows, int8_t *y, const int32_t *record)
{
    int32_t order = 0;
    int32_t row = 0;
    expand_pair(of, 0, 0);
    for (; row + 1 < rows; row += 2, order ^= 1, y += 2 * of->by.row) {
        expand_pair(of, row + 2, 1 - order);
        mcud_two_rows_s8(of->x, order, y, record, &of->by);
    }
    return row;
}

/* Computes outputs of rows [row, rows) one at a time; if both strides are 2, the next row uses the lower pair again. */
static void single_rows(const windows *of, int32_t row, int32_t rows, int8_t *y, const int32_t *record)
{
    const bool serves = of->stride_rows == 2 && of->stride_cols == 2;
    int32_t order = 0;
    bool expanded = false;
    for (int32_t top = row * of->stride_rows; row < rows; row++, top += of->stride_rows, y += of->by.row) {
        if (!expanded) {
            expand_pair(of, top, 0);
            expanded = serves;
        }
        if (serves && row + 1 < rows) {
            expand_pair(of, top + 2, 1 - order);
        } else {
            mcud_expand_row(of->columns + 1 - order, row_at(of, top + 2), of->inside, of->by.channels);
        }
        mcud_one_row_s8(of->x, order, of->stride_cols, y, record, &of->by);
        order = serves ? 1 - order : 0;
    }
}

/* Computes outputs of four channels in a row whose windows are inside the input's rows. */
static void row_inside(const windows *of, int8_t *y, const int32_t *record)
{
    const int8_t *const *const rows = of->rows;
    const int32_t at = of->channel;
    mcud_expand_three(of->columns, rows[0] + at, rows[1] + at, rows[2] + at, of->step, of->inside);
    mcud_one_row_s8(of->x, 0, of->stride_cols, y, record, &of->by);
}

/* Computes outputs [col, col + outputs) of `rows` rows from `row` on. */
static void outputs_in_rows(const mcud_op *op, int32_t row, int32_t rows, int32_t col, int32_t outputs)
{
    const mcud_dwconv2d_s8_rows_params *params = op->params;
    const mcud_plane_dims *dims = &params->dims;
    const mcud_window_steps *steps = &params->window;
    int32_t *const x = mcud_row(op->scratch, row);
    int8_t *const y = (int8_t *)mcud_row(op->out, row) + col * dims->channels;
    const int32_t left = col * steps->stride_cols - steps->pad_left;
    const int32_t right = left + (outputs - 1) * steps->stride_cols + 3;
    const int32_t first = mcud_between(0, left, right);
    const int32_t inside = mcud_between(dims->input_cols, first, right) - first;
    windows of = {.x = x, .columns = x + (first - left) * MCUD_PAIR_COLUMN, .inside = inside, .step = dims->channels,
                  .stride_rows = steps->stride_rows, .stride_cols = steps->stride_cols,
                  .by = {4, params->quant.zero_point, dims->channels, dims->output_cols * dims->channels,
                         outputs * steps->stride_cols * MCUD_PAIR_COLUMN * 4}};
    memset(&of.padding, params->input_zero_point, sizeof of.padding);
    mcud_fill_pairs(x, of.columns, params->input_zero_point);
    mcud_fill_pairs(of.columns + inside * MCUD_PAIR_COLUMN, x + (right - left) * MCUD_PAIR_COLUMN,
                    params->input_zero_point);
    const int32_t top = row * steps->stride_rows - steps->pad_top;
    for (int32_t i = 0; i < (rows - 1) * steps->stride_rows + 3; i++) {
        const bool is_inside = top + i >= 0 && top + i < dims->input_rows;
        of.rows[i] = is_inside ? (const int8_t *)mcud_row(op->in[0], top + i) + first * dims->channels : NULL;
    }
    const bool in_pairs = rows > 1 && steps->stride_rows == 1 && steps->stride_cols == 1;
    const bool alone = rows == 1 && inside > 0 && top >= 0 && top + 3 <= dims->input_rows;
    const int32_t *record = params->packed_weights;
    for (int32_t at = 0; at < dims->channels; at += 4, record += 4 * MCUD_PAIR_RECORD) {
        of.channel = at;
        of.by.channels = mcud_between(dims->channels - at, 0, 4);
        if (alone && of.by.channels == 4) {
            row_inside(&of, y + at, record);
            continue;
        }
        const int32_t done = in_pairs ? pairs_of_rows(&of, rows, y + at, record) : 0;
        if (done < rows) {
            single_rows(&of, done, rows, y + at + done * of.by.row, record);
        }
    }
}

void mcud_dwconv2d_s8_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_rows_params *params = op->params;
    const int32_t most_rows = mcud_between((MOST_INPUT_ROWS - 3) / params->window.stride_rows + 1, 1, MOST_ROWS);
    for (int32_t row = first_row; row < end_row; row += most_rows) {
        const int32_t rows = mcud_between(end_row - row, 0, most_rows);
        for (int32_t col = 0; col < params->dims.output_cols; col += params->most_outputs) {
            outputs_in_rows(op, row, rows, col, mcud_between(params->dims.output_cols - col, 0, params->most_outputs));
        }
    }
    mcud_clip_s8(mcud_row(op->out, first_row), (end_row - first_row) * params->dims.output_cols * params->dims.channels,
                 params->act.min, params->act.max);
}
