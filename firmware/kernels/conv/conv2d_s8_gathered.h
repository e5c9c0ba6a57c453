/* conv2d_s8_mve and conv2d_s8_rvv: windows are gathered, a block of them, and multiplied by all channels of their group.
 *
 * The kernel defines MULTIPLY, as mcud_vector_pixels: to, patches, bytes of a patch, count, y. */
#ifndef CONV2D_S8_GATHERED_H
#define CONV2D_S8_GATHERED_H

#include "conv2d_s8_mve.h"
#include "mcud_clip_s8.h"
#include "mcud_dot_vector_s8.h"
#include "mcud_window.h"

/* The source of gathered windows. */
typedef struct {
    const mcud_conv2d_s8_mve_params *params;
    const uint8_t *memory;   /* of the input, plus the offset of the group's first channel */
    const uint32_t *offsets; /* of the input rows, see mcud_window_rows */
    mcud_taps rows;          /* inside the input */
} window;

/* The window of the pixel whose first tap is in column `left`. */
static void gather(const window *from, int32_t left, int8_t *patch)
{
    const mcud_conv2d_s8_mve_params *params = from->params;
    const int32_t values = params->group_inputs;
    const int32_t pitch = params->window.dilation_cols * params->dims.input_channels;
    const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
    const int32_t first = (left + cols.first * params->window.dilation_cols) * params->dims.input_channels;
    const int32_t inside = (from->rows.end - from->rows.first) * (cols.end - cols.first);
    if (inside < params->window.kernel_rows * params->window.kernel_cols) {
        mcud_vector_fill(patch, params->input_zero_point, params->patch_values);
    }
    patch += from->rows.first * params->row_values;
    for (int32_t r = from->rows.first; r < from->rows.end; r++, patch += params->row_values) {
        const uint8_t *x = from->memory + from->offsets[r] + first;
        int8_t *to = patch + cols.first * values;
        if (params->in_runs) {
            mcud_vector_copy(to, x, (cols.end - cols.first) * values);
            continue;
        }
        for (int32_t s = cols.first; s < cols.end; s++, x += pitch, to += values) {
            mcud_vector_copy(to, x, values);
        }
    }
}

/* All pixels of one group of channels; `out` is the group's first channel of the first one. */
static void convolve(const mcud_op *op, const mcud_vector_channels *to, window *from, uint32_t *offsets,
                     int32_t first_row, int32_t end_row, int8_t *out)
{
    const mcud_conv2d_s8_mve_params *params = op->params;
    int8_t *const patch = (int8_t *)(offsets + params->window.kernel_rows);
    const int32_t step = params->window.stride_cols * params->dims.input_channels;
    int32_t pixels = (end_row - first_row) * params->dims.output_cols; /* not multiplied yet */
    int32_t block = mcud_vector_next_pixels(pixels, params->pixels);
    int32_t waiting = 0; /* windows gathered */
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const int32_t alike =
            params->is_column ? mcud_rows_alike(op->in[0], &params->window, params->dims.input_rows, row, end_row) : 0;
        if (alike > 0) {
            if (waiting > 0) {
                MULTIPLY(to, patch, params->patch_values, waiting, out);
                out += waiting * params->dims.output_channels;
            }
            mcud_vector_channels in_place = *to;
            in_place.reads_on = 0;
            MULTIPLY(&in_place, mcud_row(op->in[0], top), params->window.stride_rows * params->row_values, alike, out);
            out += alike * params->dims.output_channels;
            pixels -= waiting + alike;
            block = mcud_vector_next_pixels(pixels, params->pixels);
            waiting = 0;
            row += alike - 1;
            continue;
        }
        from->rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, from->rows, offsets);
        const int32_t end_inside =
            from->rows.end - from->rows.first == params->window.kernel_rows ? params->end_inside : 0;
        for (int32_t col = 0; col < params->dims.output_cols;) {
            const int32_t left = col * params->window.stride_cols - params->window.pad_left;
            int8_t *const place = patch + waiting * params->patch_values;
            int32_t taken = 1;
            if (col >= params->first_inside && col < end_inside) {
                const int32_t inside = end_inside - col;
                taken = inside < block - waiting ? inside : block - waiting;
                mcud_vector_gather(place, from->memory + left * params->dims.input_channels, step, taken, offsets,
                                   params->window.kernel_rows, params->row_values);
            } else {
                gather(from, left, place);
            }
            col += taken;
            waiting += taken;
            if (waiting == block) {
                MULTIPLY(to, patch, params->patch_values, block, out);
                out += block * params->dims.output_channels;
                pixels -= block;
                block = mcud_vector_next_pixels(pixels, params->pixels);
                waiting = 0;
            }
        }
    }
}

static inline void convolve_groups(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_mve_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    mcud_vector_channels to = {
        .records = params->packed_weights,
        .channels = params->group_outputs,
        .pitch = params->dims.output_channels,
        .depth = params->patch_values,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
        .reads_on = 1,
    };
    window from = {
        .params = params,
        .memory = op->in[0]->memory,
        .offsets = offsets,
    };
    for (int32_t group = 0; group < params->groups; group++) {
        convolve(op, &to, &from, offsets, first_row, end_row, out + group * params->group_outputs);
        to.records += params->group_words;
        from.memory += params->group_inputs;
    }
    const int32_t elements = (end_row - first_row) * params->dims.output_cols * params->dims.output_channels;
    mcud_clip_s8(out, elements, params->act.min, params->act.max);
}

#endif
