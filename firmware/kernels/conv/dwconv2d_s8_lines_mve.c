#include "dwconv2d_s8_lines_mve.h"

#include <stddef.h>

#include "mcud_clip_s8.h"
#include "mcud_lines_s8.h"

enum { CHANNELS = 16, MOST_HEIGHT = 16 };

/* The input of some outputs: rows, the first column inside the input, NULL in the padding; columns of lines. */
typedef struct {
    const int8_t *rows[MOST_HEIGHT];
    int8_t *columns;
    int32_t inside;
} window_rows;

static inline int32_t between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* Writes the columns of channels from `channel` on to lines. */
static void write_lines(const mcud_dwconv2d_s8_lines_mve_params *params, const window_rows *of, int32_t channel,
                        int32_t channels)
{
    mcud_two_rows two = {.channels = channels, .columns = of->inside};
    for (int32_t i = 0; i < params->height; i += 2) {
        for (int32_t k = 0; k < 2; k++) {
            const int8_t *const at = of->rows[i + k];
            two.at[k] = (at != NULL ? at : params->padding) + channel;
            two.step[k] = at != NULL ? params->dims.channels : 0;
        }
        mcud_interleave_lines(of->columns + i, params->line, params->height, &two);
    }
}

/* Outputs [col, col + most_outputs) of rows [first_row, end_row). */
static void outputs_in_columns(const mcud_op *op, int32_t first_row, int32_t end_row, int32_t col)
{
    const mcud_dwconv2d_s8_lines_mve_params *params = op->params;
    const mcud_plane_dims *dims = &params->dims;
    const int32_t left = col * params->window.stride_cols - params->window.pad_left;
    const int32_t right = left + (params->most_outputs - 1) * params->window.stride_cols + params->kernel_cols;
    const int32_t first = between(0, left, right);
    int8_t *const x = mcud_row(op->scratch, first_row);
    window_rows of = {.columns = x + (first - left) * params->height,
                      .inside = between(dims->input_cols, first, right) - first};
    mcud_vector_fill(x, params->padding[0], between(dims->channels, 0, CHANNELS) * params->line);
    mcud_lines_outputs by = {.x = x, .line = params->line, .step = params->window.stride_cols * params->height,
                             .outputs = params->most_outputs, .pitch = dims->channels,
                             .row = dims->output_cols * dims->channels, .zero_point = params->quant.zero_point};
    for (int32_t row = first_row; row < end_row; row += by.rows) {
        by.rows = between(end_row - row, 1, params->rows);
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const int32_t end = between(top + params->kernel_rows + by.rows - 1, 0, dims->input_rows);
        for (int32_t i = 0; i < params->height; i++) {
            of.rows[i] = top + i >= 0 && top + i < end
                             ? (const int8_t *)mcud_row(op->in[0], top + i) + first * dims->channels
                             : NULL;
        }
        by.y = (int8_t *)mcud_row(op->out, row) + col * dims->channels;
        by.records = params->packed_weights;
        for (int32_t channel = 0; channel < dims->channels; channel += CHANNELS) {
            by.channels = between(dims->channels - channel, 0, CHANNELS);
            write_lines(params, &of, channel, by.channels);
            mcud_lines_s8(&by, params->vectors);
            by.y += CHANNELS;
            by.records += CHANNELS * (1 + MCUD_FACTORS + 4 * params->vectors);
        }
    }
}

void mcud_dwconv2d_s8_lines_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_lines_mve_params *params = op->params;
    const int32_t last = params->dims.output_cols - params->most_outputs;
    for (int32_t col = 0; col < last; col += params->most_outputs) {
        outputs_in_columns(op, first_row, end_row, col);
    }
    outputs_in_columns(op, first_row, end_row, last);
    mcud_clip_s8(mcud_row(op->out, first_row), (end_row - first_row) * params->dims.output_cols * params->dims.channels,
                 params->act.min, params->act.max);
}
