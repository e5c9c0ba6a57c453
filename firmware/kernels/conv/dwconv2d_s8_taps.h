/* dwconv2d_s8_mve and dwconv2d_s8_rvv: windows inside the input share a list of taps.
 *
 * The kernel defines MULTIPLY: params, windows, y[count][channels]. */
#ifndef DWCONV2D_S8_TAPS_H
#define DWCONV2D_S8_TAPS_H

#include "dwconv2d_s8_mve.h"
#include "mcud_clip_s8.h"
#include "mcud_vector.h"
#include "mcud_window.h"

/* The taps of a window, in the input from column `left` on, or in the padding, whose values stand in flash; rows and
 * columns are those inside the input. */
static void find_taps(const mcud_op *op, const uint32_t *offsets, mcud_taps rows, mcud_taps cols, int32_t left,
                      const int8_t **taps)
{
    const mcud_dwconv2d_s8_mve_params *params = op->params;
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    const uint8_t *const memory =
        op->in[0]->memory + (left + cols.first * params->window.dilation_cols) * params->dims.channels;
    for (int32_t r = 0; r < params->window.kernel_rows; r++, taps += params->window.kernel_cols) {
        const int inside = r >= rows.first && r < rows.end;
        const void *x = inside ? memory + offsets[r] : NULL;
        mcud_vector_find_taps(taps, params->window.kernel_cols, cols.first, inside ? cols.end : cols.first, x, pitch,
                              params->padding);
    }
}

static inline void multiply_windows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_mve_params *params = op->params;
    const int32_t tap_count = params->window.kernel_rows * params->window.kernel_cols;
    const int32_t channels = params->dims.channels;
    const int32_t step = params->pixels * params->window.stride_cols * channels;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    const int8_t **taps = mcud_pointers(offsets + params->window.kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    const int32_t is_column = params->dims.output_cols == 1 && params->end_inside > params->first_inside;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const mcud_taps rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, rows, offsets);
        for (int32_t col = 0; col < params->dims.output_cols;) {
            const int32_t left = col * params->window.stride_cols - params->window.pad_left;
            mcud_taps cols = {0, params->window.kernel_cols};
            if (col < params->first_inside || col >= params->end_inside) {
                cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            }
            find_taps(op, offsets, rows, cols, left, taps);
            const int32_t rows_alike =
                is_column ? mcud_rows_alike(op->in[0], &params->window, params->dims.input_rows, row, end_row) : 0;
            if (rows_alike > 1) {
                const int32_t next = params->window.stride_rows * (int32_t)op->in[0]->row_bytes;
                const mcud_windows_alike alike = {taps, tap_count, 0, next, rows_alike, channels};
                MULTIPLY(params, &alike, y);
                y += rows_alike * channels;
                row += rows_alike - 1;
                break;
            }
            int32_t count = 1; /* pixels whose windows share these taps */
            if (rows.end - rows.first == params->window.kernel_rows &&
                cols.end - cols.first == params->window.kernel_cols) {
                count = params->end_inside - col;
            }
            col += count;
            for (int32_t at = 0; count > 0;) {
                const int32_t windows = count < params->pixels ? 1 : count / params->pixels;
                const int32_t pixels = count < params->pixels ? count : params->pixels;
                const mcud_windows_alike alike = {taps, tap_count, at, step, windows, pixels * channels};
                MULTIPLY(params, &alike, y);
                at += windows * step;
                y += windows * pixels * channels;
                count -= windows * pixels;
            }
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}

#endif
