#include "dwconv2d_s8_pairs.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_pair_windows_s8.h"

/* The most input rows under the output rows that are computed together. */
enum { MOST_INPUT_ROWS = 32 };

/* The windows of a part of some output rows. */
typedef struct {
    const int8_t *rows[MOST_INPUT_ROWS]; /* the first column inside the input; NULL in the padding */
    int32_t *x;      /* all columns, expanded */
    int32_t left;    /* words of the columns in the left padding */
    int32_t inside;  /* columns inside the input */
    int32_t channel; /* the first one of up to four */
    int32_t padding; /* four times the zero point */
    int32_t step;    /* from a column to the next one */
    mcud_pair_windows by;
} windows;

static inline mcud_pair_row row_at(const windows *of, int32_t row)
{
    const int8_t *const at = of->rows[row];
    return at != NULL ? (mcud_pair_row){at + of->channel, of->step} : (mcud_pair_row){(const int8_t *)&of->padding, 0};
}

/* Expands the last `fresh` pairs under a window whose first row is `top`. With an odd number of rows, the last row's
 * partner has weights of 0. If no later window needs the partner, it is not read: the row is `alone`. */
static void expand_pairs(const windows *of, int32_t top, int32_t fresh, bool alone)
{
    for (int32_t pair = of->by.pairs - fresh; pair < of->by.pairs; pair++) {
        const int32_t place = of->by.first + pair < of->by.pairs ? of->by.first + pair : of->by.first + pair - of->by.pairs;
        const int32_t row = top + 2 * pair;
        const mcud_pair_row upper = row_at(of, row);
        const mcud_pair_row lower = alone && pair == of->by.pairs - 1 ? upper : row_at(of, row + 1);
        mcud_expand_columns(of->x + place * (of->by.pair_bytes / 4) + of->left, upper, lower, of->inside, of->by.channels);
    }
}

/* Computes outputs of up to four channels in rows `row`, `row` + step, ... below `rows`. */
static void every_row(const mcud_dwconv2d_s8_pairs_params *params, windows *of, int32_t row, int32_t rows, int32_t step,
                      int8_t *y, const int32_t *record)
{
    const int32_t stride = params->window.stride_rows;
    const int32_t pitch = params->dims.output_cols * params->dims.channels;
    const int32_t later = step * stride / 2; /* pairs from a window to the next one */
    int32_t fresh = of->by.pairs;
    for (of->by.first = 0; row < rows; row += step, fresh = later < of->by.pairs ? later : of->by.pairs) {
        expand_pairs(of, row * stride, fresh, params->kernel_rows % 2 != 0 && row + step >= rows);
        mcud_pair_windows_s8(of->x, y + row * pitch, record, params->kernel_cols, params->window.stride_cols, &of->by);
        of->by.first = (of->by.first + later) % of->by.pairs;
    }
}

/* Computes outputs [col, col + outputs) of `rows` rows from `row` on. */
static void outputs_in_rows(const mcud_op *op, int32_t row, int32_t rows, int32_t col, int32_t outputs)
{
    const mcud_dwconv2d_s8_pairs_params *params = op->params;
    const mcud_plane_dims *dims = &params->dims;
    const mcud_window_steps *steps = &params->window;
    int8_t *const y = (int8_t *)mcud_row(op->out, row) + col * dims->channels;
    const int32_t left = col * steps->stride_cols - steps->pad_left;
    const int32_t right = left + (outputs - 1) * steps->stride_cols + params->kernel_cols;
    const int32_t first = mcud_between(0, left, right);
    const int32_t inside = mcud_between(dims->input_cols, first, right) - first;
    const int32_t pairs = (params->kernel_rows + 1) / 2;
    const int32_t columns = (params->most_outputs - 1) * steps->stride_cols + params->kernel_cols;
    windows of = {.x = mcud_row(op->scratch, row), .left = (first - left) * MCUD_WINDOW_COLUMN, .inside = inside,
                  .step = dims->channels,
                  .by = {params->quant.zero_point, dims->channels, pairs, columns * MCUD_WINDOW_COLUMN * 4, outputs, 4, 0}};
    memset(&of.padding, params->input_zero_point, sizeof of.padding);
    for (int32_t pair = 0; pair < pairs; pair++) {
        int32_t *const x = of.x + pair * columns * MCUD_WINDOW_COLUMN;
        mcud_fill_pairs(x, x + of.left, params->input_zero_point);
        mcud_fill_pairs(x + of.left + inside * MCUD_WINDOW_COLUMN, x + (right - left) * MCUD_WINDOW_COLUMN,
                        params->input_zero_point);
    }
    const int32_t top = row * steps->stride_rows - steps->pad_top;
    for (int32_t i = 0; i < (rows - 1) * steps->stride_rows + params->kernel_rows; i++) {
        const bool is_inside = top + i >= 0 && top + i < dims->input_rows;
        of.rows[i] = is_inside ? (const int8_t *)mcud_row(op->in[0], top + i) + first * dims->channels : NULL;
    }
    const int32_t apart = steps->stride_rows % 2 != 0 ? 2 : 1;
    const int32_t words = 1 + MCUD_FACTORS + pairs * ((params->kernel_cols + 1) / 2);
    const int32_t *record = params->packed_weights;
    for (int32_t at = 0; at < dims->channels; at += 4, record += 4 * words) {
        of.channel = at;
        of.by.channels = mcud_between(dims->channels - at, 0, 4);
        for (int32_t begin = 0; begin < apart; begin++) {
            every_row(params, &of, begin, rows, apart, y + at, record);
        }
    }
}

void mcud_dwconv2d_s8_pairs(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_pairs_params *params = op->params;
    const int32_t most_rows = (MOST_INPUT_ROWS - params->kernel_rows) / params->window.stride_rows + 1;
    for (int32_t row = first_row; row < end_row; row += most_rows) {
        const int32_t rows = mcud_between(end_row - row, 0, most_rows);
        for (int32_t col = 0; col < params->dims.output_cols; col += params->most_outputs) {
            outputs_in_rows(op, row, rows, col, mcud_between(params->dims.output_cols - col, 0, params->most_outputs));
        }
    }
    mcud_clip_s8(mcud_row(op->out, first_row), (end_row - first_row) * params->dims.output_cols * params->dims.channels,
                 params->act.min, params->act.max);
}
