#include "maxpool_indices.h"

#include <stddef.h>

#include "mcud_window.h"

/* The position of a window, whose first tap may be in the padding, and its taps inside the image. */
typedef struct {
    int32_t top;
    int32_t left;
    mcud_taps rows;
    mcud_taps cols;
} window;

typedef struct {
    const void *row;
    int32_t at;
} place;

/* `element`: 0 for int8, 1 for int32, 2 for float32. */
static int larger(int32_t element, place one, place other)
{
    if (element == 0) {
        return ((const int8_t *)one.row)[one.at] > ((const int8_t *)other.row)[other.at];
    }
    if (element == 1) {
        return ((const int32_t *)one.row)[one.at] > ((const int32_t *)other.row)[other.at];
    }
    return ((const float *)one.row)[one.at] > ((const float *)other.row)[other.at];
}

static int32_t index_of_largest(const mcud_op *op, const window *seen, int32_t channel)
{
    const mcud_maxpool_indices_params *params = op->params;
    place best = {NULL, 0};
    int32_t index = 0;
    for (int32_t r = seen->rows.first; r < seen->rows.end; r++) {
        const int32_t row = seen->top + r * params->window.dilation_rows;
        place here = {mcud_row(op->in[0], row), 0};
        for (int32_t s = seen->cols.first; s < seen->cols.end; s++) {
            const int32_t col = seen->left + s * params->window.dilation_cols;
            here.at = col * params->dims.channels + channel;
            if (best.row == NULL || larger(params->element, here, best)) {
                best = here;
                index = row * params->row_step + col * params->col_step;
            }
        }
    }
    return index + channel * params->channel_step;
}

void mcud_maxpool_indices(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_indices_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        int32_t *out = mcud_row(op->out, row);
        window seen = {
            row * params->window.stride_rows - params->window.pad_top, -params->window.pad_left, {0, 0}, {0, 0}};
        seen.rows =
            mcud_row_taps(&params->window, seen.top, params->dims.input_rows);
        for (int32_t col = 0; col < params->dims.output_cols; col++, seen.left += params->window.stride_cols) {
            seen.cols =
                mcud_col_taps(&params->window, seen.left, params->dims.input_cols);
            for (int32_t channel = 0; channel < params->dims.channels; channel++) {
                *out++ = index_of_largest(op, &seen, channel);
            }
        }
    }
}
