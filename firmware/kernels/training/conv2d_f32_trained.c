#include "conv2d_f32_trained.h"

#include "mcud_dot_f32.h"
#include "mcud_lines_f32.h"
#include "mcud_unpacked_f32.h"
#include "mcud_window.h"

/* Pixels of the output whose windows have the same taps inside the input. */
typedef struct {
    const mcud_conv2d_f32_trained_params *params;
    const float *weights; /* of the first tap inside */
    const float *bias;
    const uint8_t *memory;   /* of the input, plus the bytes from the start of a row to the first tap */
    const uint32_t *offsets; /* of the rows inside */
    int32_t rows;
    int32_t runs;   /* of taps, in each row */
    int32_t values; /* in a run */
    mcud_pitches_f32 pitches;
} window_pixels;

/* Adds the products of one pixel or two and one output channel or four; w: weights of the first tap. */
static inline void add_windows(const window_pixels *from, const float *w, int32_t pixels, int32_t lines, float *sums)
{
    const mcud_window *const window = &from->params->window;
    const int32_t channels = from->params->dims.input_channels;
    const int32_t apart = window->dilation_cols * channels;
    const int32_t w_gap = window->kernel_cols * channels - from->runs * from->values;
    for (int32_t r = 0; r < from->rows; r++, w += w_gap) {
        const void *row = from->memory + from->offsets[r];
        const float *x = row;
        for (int32_t run = 0; run < from->runs; run++, x += apart, w += from->values) {
            if (pixels == 2) {
                mcud_add_unpacked_2x4_f32(x, w, &from->pitches, from->values, sums);
            } else if (lines == 4) {
                mcud_add_unpacked_1x4_f32(x, w, from->pitches.lines, from->values, sums);
            } else {
                *sums = mcud_add_line_f32(x, w, from->values, *sums);
            }
        }
    }
}

/* Computes the output channels of one pixel or two, but for the last ones if their number is no multiple of four. */
static void four_channels_each(const window_pixels *from, int32_t pixels, float *out)
{
    const mcud_act_f32 *const act = &from->params->act;
    const int32_t outputs = from->params->dims.output_channels;
    const float *w = from->weights;
    for (int32_t k = 0; k + 4 <= outputs; k += 4, w += 4 * from->pitches.lines) {
        float sums[8];
        mcud_begin_f32(from->bias + k, pixels, sums);
        add_windows(from, w, pixels, 4, sums);
        mcud_clamp_4_f32(sums, act->min, act->max, out + k);
        if (pixels == 2) {
            mcud_clamp_4_f32(sums + 4, act->min, act->max, out + outputs + k);
        }
    }
}

/* Computes these last channels of one pixel. */
static void last_channels(const window_pixels *from, float *out)
{
    const mcud_act_f32 *const act = &from->params->act;
    const int32_t outputs = from->params->dims.output_channels;
    for (int32_t k = outputs & ~3; k < outputs; k++) {
        float sum = from->bias[k];
        add_windows(from, from->weights + k * from->pitches.lines, 1, 1, &sum);
        out[k] = mcud_clamp_f32(sum, act->min, act->max);
    }
}

/* Computes `count` pixels. */
static void multiply(window_pixels *from, int32_t count, float *out)
{
    while (count > 0) {
        const int32_t pixels = count < 2 ? 1 : 2;
        four_channels_each(from, pixels, out);
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            last_channels(from, out);
            from->memory += from->pitches.pixels * (int32_t)sizeof *out;
            out += from->params->dims.output_channels;
        }
        count -= pixels;
    }
}

/* The columns of the output whose windows have no padding. */
static mcud_taps inner_columns(const mcud_conv2d_f32_trained_params *params)
{
    const mcud_window *const window = &params->window;
    const int32_t last_tap = (window->kernel_cols - 1) * window->dilation_cols;
    return mcud_taps_inside(-window->pad_left, window->stride_cols, params->dims.output_cols, 0,
                            params->dims.input_cols - last_tap);
}

void mcud_conv2d_f32_trained(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_trained_params *params = op->params;
    const mcud_window *const window = &params->window;
    const mcud_taps inner = inner_columns(params);
    const int32_t inputs = params->dims.input_channels;
    const int32_t pixel_bytes = inputs * (int32_t)sizeof(float);
    const float *weights = mcud_row(op->in[1], 0);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    window_pixels from = {
        .params = params,
        .bias = mcud_row(op->in[2], 0),
        .pitches = {window->stride_cols * inputs, window->kernel_rows * window->kernel_cols * inputs},
    };
    for (int32_t row = first_row, next; row < end_row; row = next) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        const mcud_taps rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, rows, offsets);
        from.offsets = offsets + rows.first;
        from.rows = rows.end - rows.first;
        next = params->rows_join ? mcud_run_end(op->in[0], row, end_row) : row + 1;
        for (int32_t col = 0, count; col < params->dims.output_cols; col += count) {
            const int32_t left = col * window->stride_cols - window->pad_left;
            const mcud_taps cols = mcud_col_taps(window, left, params->dims.input_cols);
            const int32_t taps = cols.end - cols.first;
            count = col >= inner.first && col < inner.end ? inner.end - col : 1;
            from.weights = weights + (rows.first * window->kernel_cols + cols.first) * inputs;
            from.memory = op->in[0]->memory + (left + cols.first * window->dilation_cols) * pixel_bytes;
            from.runs = window->dilation_cols == 1 ? 1 : taps;
            from.values = window->dilation_cols == 1 ? taps * inputs : inputs;
            multiply(&from, count * (next - row), out);
            out += count * (next - row) * params->dims.output_channels;
        }
    }
}
