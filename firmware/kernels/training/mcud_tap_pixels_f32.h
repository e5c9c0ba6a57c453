/* The pixels that the gradient of a weight sums over, float32: output pixels whose tap is inside the input. */
#ifndef MCUD_TAP_PIXELS_F32_H
#define MCUD_TAP_PIXELS_F32_H

#include "mcud_lines_f32.h"
#include "mcud_updates_f32.h"
#include "mcud_window.h"

typedef struct {
    const mcud_op *op; /* in[0] is the gradient of the output, in[1] the input */
    const mcud_conv_dims *dims;
    const mcud_window *window;
    mcud_taps step; /* rows of the gradient */
    const uint8_t *inputs;    /* memory of the input, plus the offset of the tap in a row */
    const uint8_t *gradients; /* memory of the gradient, plus the offset of its first column */
    uint32_t *input_rows;     /* offsets, by row of the gradient */
    uint32_t *gradient_rows;  /* offsets */
    mcud_taps rows;           /* of the gradient, whose tap is inside the input */
    mcud_taps runs;           /* the same rows, or the first one if the others continue it */
    mcud_terms_f32 cols;      /* of a run */
} mcud_tap_pixels_f32;

/* Looks up the rows of a step of the gradient; `rows` has room for the offsets of both tensors, of all
 * `output_rows`. Returns the memory after them. */
static inline void *mcud_start_taps_f32(mcud_tap_pixels_f32 *of, uint32_t *rows, int32_t output_rows)
{
    of->gradient_rows = rows;
    of->input_rows = rows + output_rows;
    mcud_window_rows(of->op->in[0], 0, 1, of->step, of->gradient_rows);
    return rows + 2 * output_rows;
}

/* Selects row r of the window. */
static inline void mcud_tap_row_f32(mcud_tap_pixels_f32 *of, int32_t r)
{
    const mcud_window *const window = of->window;
    const int32_t top = r * window->dilation_rows - window->pad_top;
    of->rows = of->step;
    while (of->rows.first < of->rows.end && top + of->rows.first * window->stride_rows < 0) {
        of->rows.first++;
    }
    const int32_t input_rows = of->dims->input_rows;
    while (of->rows.end > of->rows.first && top + (of->rows.end - 1) * window->stride_rows >= input_rows) {
        of->rows.end--;
    }
    mcud_window_rows(of->op->in[1], top, window->stride_rows, of->rows, of->input_rows);
}

/* Whether all rows of the selected tap are one run in both tensors. */
static inline int mcud_tap_rows_join_f32(const mcud_tap_pixels_f32 *of)
{
    const uint32_t input_bytes = of->op->in[1]->row_bytes;
    const uint32_t gradient_bytes = of->op->in[0]->row_bytes;
    const int32_t cols_bytes = of->cols.count * (int32_t)sizeof(float);
    if ((uint32_t)(cols_bytes * of->cols.w_pitch) != input_bytes ||
        (uint32_t)(cols_bytes * of->cols.x_pitch) != gradient_bytes) {
        return 0;
    }
    int32_t row = of->rows.first;
    while (row + 1 < of->rows.end && of->input_rows[row + 1] - of->input_rows[row] == input_bytes &&
           of->gradient_rows[row + 1] - of->gradient_rows[row] == gradient_bytes) {
        row++;
    }
    return row + 1 == of->rows.end;
}

/* Selects the tap of column s in that row. */
static inline void mcud_tap_column_f32(mcud_tap_pixels_f32 *of, int32_t s)
{
    const mcud_window *const window = of->window;
    const int32_t inputs = of->dims->input_channels;
    const int32_t outputs = of->dims->output_channels;
    const int32_t left = s * window->dilation_cols - window->pad_left;
    const mcud_taps cols =
        mcud_taps_inside(left, window->stride_cols, of->dims->output_cols, 0, of->dims->input_cols);
    const int32_t first = cols.first < cols.end ? left + cols.first * window->stride_cols : 0;
    of->inputs = of->op->in[1]->memory + first * inputs * (int32_t)sizeof(float);
    of->gradients = of->op->in[0]->memory + cols.first * outputs * (int32_t)sizeof(float);
    of->cols = (mcud_terms_f32){cols.end - cols.first, outputs, window->stride_cols * inputs};
    of->runs = of->rows;
    if (mcud_tap_rows_join_f32(of)) {
        of->cols.count *= of->rows.end - of->rows.first;
        of->runs.end = of->runs.first + 1;
    }
}

static inline const float *mcud_tap_input_f32(const mcud_tap_pixels_f32 *of, int32_t row)
{
    const void *const input = of->inputs + of->input_rows[row];
    return input;
}

static inline const float *mcud_tap_gradient_f32(const mcud_tap_pixels_f32 *of, int32_t row)
{
    const void *const gradient = of->gradients + of->gradient_rows[row];
    return gradient;
}

/* Starts an update by the rows from->step of the gradient, or by all if the operation is whole: looks up these rows,
 * and finds the parameters, their factors and the sums. */
static inline void mcud_start_update_f32(mcud_tap_pixels_f32 *from, mcud_update_f32 *to, int32_t output_rows,
                                         float factor)
{
    uint32_t *const offsets = mcud_row(from->op->scratch, from->step.first);
    if (from->op->rows == 1) {
        from->step = (mcud_taps){0, output_rows};
    }
    to->before = mcud_row(from->op->in[2], 0);
    mcud_scale_update_f32(to, mcud_row(from->op->in[3], 0), factor);
    to->out = mcud_row(from->op->out, 0);
    to->is_first = from->step.first == 0;
    to->is_last = from->step.end == output_rows;
    float *const sums = mcud_start_taps_f32(from, offsets, output_rows);
    to->sums = to->in_place ? to->out : to->is_first && to->is_last ? NULL : sums;
}

#endif
