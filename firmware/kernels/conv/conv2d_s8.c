#include "conv2d_s8.h"

#include "mcud_dot_s8.h"
#include "mcud_window.h"

/* Where the window of a pixel lies, and what is written where it lies outside. */
typedef struct {
    const mcud_conv2d_s8_params *params;
    const uint8_t *memory;   /* of the input, plus the offset of the group's first channel */
    const uint32_t *offsets; /* of the input rows, see mcud_window_rows */
    int8_t *run;             /* see expand_run */
    mcud_taps rows;          /* inside the input */
    int32_t places;          /* pixels in a group, 2 or 3 */
    int32_t last_left;       /* windows that begin in columns [0, last_left] are one run in each row; or -1 */
} window;

static int16_t *expand_values(const window *from, const int8_t *source, int32_t values, int16_t *x)
{
    return from->places == 2 ? mcud_expand(x, source, values, 2) : mcud_expand(x, source, values, 3);
}

static int16_t *expand_padding(const window *from, int32_t values, int16_t *x)
{
    for (; values > 0; values -= 4, x += 4 * from->places) {
        mcud_expand_same(x, from->params->input_zero_point, from->places);
    }
    return x;
}

/* A row of the window whose taps are one run of bytes; `cols` are inside the input, from byte `first` on. */
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

/* The window of the pixel whose first tap is in column `left`, to one pixel's place at x. */
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

/* All pixels of one group of channels; `out` is the group's first channel of the first one. */
static void convolve(const mcud_op *op, const mcud_channels_s8 *to, window *from, int32_t first_row,
                     int32_t end_row, int8_t *out)
{
    const mcud_conv2d_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int16_t *const x = (int16_t *)(void *)(offsets + params->window.kernel_rows);
    int32_t pixels = (end_row - first_row) * params->dims.output_cols; /* not multiplied yet */
    int32_t block = mcud_next_pixels(pixels, params->most_pixels);
    int32_t expanded = 0;
    from->places = block == 3 ? 3 : 2;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        from->rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, from->rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            expand_window(from, left, x + 2 * expanded);
            expanded++;
            if (expanded < block) {
                continue;
            }
            mcud_multiply_s8(to, x, block, out);
            out += block * params->dims.output_channels;
            pixels -= block;
            block = mcud_next_pixels(pixels, params->most_pixels);
            expanded = 0;
            from->places = block == 3 ? 3 : 2;
        }
    }
}

void mcud_conv2d_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_params *params = op->params;
    const int32_t group_words = (params->group_outputs + 1) / 2 * (4 + 2 * params->patch_groups);
    int8_t *const out = mcud_row(op->out, first_row);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    mcud_channels_s8 to = {
        .records = params->packed_weights,
        .channels = params->group_outputs,
        .groups = params->patch_groups,
        .finish = {params->quant.zero_point, params->quant.left_shift, params->dims.output_channels},
    };
    window from = {
        .params = params,
        .memory = op->in[0]->memory,
        .offsets = offsets,
        .last_left = params->row_runs > 1 ? -1 : params->dims.input_cols - params->window.kernel_cols,
        .run = (int8_t *)(offsets + params->window.kernel_rows + 2 * params->most_pixels * params->patch_groups),
    };
    for (int32_t group = 0; group < params->groups; group++) {
        convolve(op, &to, &from, first_row, end_row, out + group * params->group_outputs);
        to.records += group_words;
        from.memory += params->group_inputs;
    }
    const int32_t elements = (end_row - first_row) * params->dims.output_cols * params->dims.output_channels;
    mcud_clip_s8(out, elements, params->act.min, params->act.max);
}
