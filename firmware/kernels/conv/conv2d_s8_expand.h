/* Expands windows to int16, for conv2d_s8 and conv2d_s8_wide. These define FEW and MOST, the two numbers of pixels
 * whose expanded windows may be interleaved. */
#ifndef CONV2D_S8_EXPAND_H
#define CONV2D_S8_EXPAND_H

#include "conv2d_s8.h"
#include "mcud_dot_s8.h"
#include "mcud_window.h"

/* The source of the windows to expand. */
typedef struct {
    const mcud_conv2d_s8_params *params;
    const uint8_t *memory;   /* of the input, plus the offset of the group's first channel */
    const uint32_t *offsets; /* of the input rows, see mcud_window_rows */
    int8_t *run;             /* see expand_run */
    mcud_taps rows;          /* inside the input */
    int32_t places;          /* FEW or MOST */
    int32_t last_left;       /* windows from columns [0, last_left] are one run in each row; -1: none */
} window;

static int16_t *expand_values(const window *from, const int8_t *source, int32_t values, int16_t *x)
{
    return from->places == FEW ? mcud_expand(x, source, values, FEW) : mcud_expand(x, source, values, MOST);
}

static int16_t *expand_padding(const window *from, int32_t values, int16_t *x)
{
    for (; values > 0; values -= 4, x += 4 * from->places) {
        mcud_expand_same(x, from->params->input_zero_point, from->places);
    }
    return x;
}

/* Expands a row of the window whose taps are one run of bytes; taps `cols` are inside the input, from byte `first`
 * on. */
static int16_t *expand_run(const window *from, const uint8_t *row, mcud_taps cols, int32_t first, int16_t *x)
{
    const mcud_conv2d_s8_params *params = from->params;
    const int32_t channels = params->dims.input_channels;
    const int32_t before = cols.first * channels;
    const int32_t inside = (cols.end - cols.first) * channels;
    const void *source = row + first;
    if (channels % 4 != 0) { /* the padding may end within a group */
        memset(from->run, params->input_zero_point, (size_t)params->run_values);
        memcpy(from->run + before, source, (size_t)inside);
        return expand_values(from, from->run, params->run_values, x);
    }
    x = expand_padding(from, before, x);
    x = expand_values(from, source, inside, x);
    return expand_padding(from, params->run_values - before - inside, x);
}

/* The same if every tap is a separate run. */
static int16_t *expand_taps(const window *from, const uint8_t *row, mcud_taps cols, int32_t first, int16_t *x)
{
    const mcud_conv2d_s8_params *params = from->params;
    for (int32_t s = 0; s < params->window.kernel_cols; s++) {
        if (s < cols.first || s >= cols.end) {
            x = expand_padding(from, params->run_values, x);
            continue;
        }
        const void *source = row + first;
        x = expand_values(from, source, params->run_values, x);
        first += params->window.dilation_cols * params->dims.input_channels;
    }
    return x;
}

/* Expands the window whose first tap is in column `left`, to a pixel's place at x. */
static void expand_window(const window *from, int32_t left, int16_t *x)
{
    const mcud_conv2d_s8_params *params = from->params;
    if (left >= 0 && left <= from->last_left) {
        const uint8_t *const first = from->memory + left * params->dims.input_channels;
        for (int32_t r = 0; r < params->window.kernel_rows; r++) {
            if (r < from->rows.first || r >= from->rows.end) {
                x = expand_padding(from, params->run_values, x);
            } else {
                const void *source = first + from->offsets[r];
                x = expand_values(from, source, params->run_values, x);
            }
        }
        return;
    }
    const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
    const int32_t first = (left + cols.first * params->window.dilation_cols) * params->dims.input_channels;
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        if (r < from->rows.first || r >= from->rows.end || cols.first == cols.end) {
            for (int32_t run = 0; run < params->row_runs; run++) {
                x = expand_padding(from, params->run_values, x);
            }
        } else if (params->row_runs == 1) {
            x = expand_run(from, from->memory + from->offsets[r], cols, first, x);
        } else {
            x = expand_taps(from, from->memory + from->offsets[r], cols, first, x);
        }
    }
}

#endif
