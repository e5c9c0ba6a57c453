#include "conv2d_f32_s8w.h"

#include "mcud_dot_s8w.h"
#include "mcud_window.h"

/* The windows of one row of the output, for one group of channels. */
typedef struct {
    const mcud_conv2d_f32_s8w_params *params;
    mcud_channels_s8w to;
    const uint8_t *memory;   /* of the input, plus the offset of the group's first channel */
    const uint32_t *offsets; /* of the input rows, see mcud_window_rows */
    mcud_taps rows;          /* inside the input */
} window;

/* Computes 1 or 4 pixels whose taps `cols` are inside the input; those of the first pixel begin in column `first`. */
static void convolve(const window *from, int32_t pixels, mcud_taps cols, int32_t first, float *y)
{
    const mcud_conv2d_f32_s8w_params *params = from->params;
    const int32_t taps = cols.end - cols.first;
    const int32_t runs = params->one_run ? 1 : taps;
    const int32_t values = params->one_run ? taps * params->group_inputs : params->group_inputs;
    const int32_t run_pitch = params->window.dilation_cols * params->dims.input_channels;
    const int32_t step = params->window.stride_cols * params->dims.input_channels;
    const int32_t row_weights = 4 * params->window.kernel_cols * params->group_inputs;
    const int8_t *block = from->to.weights + 4 * cols.first * params->group_inputs;
    for (int32_t k = 0; k < from->to.channels; k += 4, block += 4 * from->to.depth) {
        float sums[16];
        mcud_begin_f32(from->to.bias + k, pixels, sums);
        for (int32_t r = from->rows.first; r < from->rows.end; r++) {
            const void *row = from->memory + from->offsets[r];
            const float *x = (const float *)row + first * params->dims.input_channels;
            const int8_t *w = block + r * row_weights;
            for (int32_t run = 0; run < runs; run++, x += run_pitch, w += 4 * values) {
                if (pixels == 1) {
                    mcud_add_1x4_s8w(x, w, from->to.scale + k, values, sums);
                } else {
                    mcud_add_4x4_s8w(x, step, w, from->to.scale + k, values, sums);
                }
            }
        }
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            float *const to = y + pixel * params->dims.output_channels + k;
            mcud_finish_f32(&from->to.act, sums + 4 * pixel, from->to.channels - k, to);
        }
    }
}

/* Computes a row of the output, four pixels at a time if no tap is padding. */
static void convolve_row(const window *from, float *out)
{
    const mcud_conv2d_f32_s8w_params *params = from->params;
    const int32_t reach =
        (params->window.kernel_cols - 1) * params->window.dilation_cols + 3 * params->window.stride_cols;
    int32_t left = -params->window.pad_left;
    for (int32_t col = 0; col < params->dims.output_cols;) {
        int32_t pixels = 1;
        mcud_taps cols = {0, params->window.kernel_cols};
        if (left >= 0 && left + reach < params->dims.input_cols && col + 4 <= params->dims.output_cols) {
            pixels = 4;
        } else {
            cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
        }
        convolve(from, pixels, cols, left + cols.first * params->window.dilation_cols, out);
        left += pixels * params->window.stride_cols;
        out += pixels * params->dims.output_channels;
        col += pixels;
    }
}

void mcud_conv2d_f32_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_s8w_params *params = op->params;
    const int32_t depth = params->window.kernel_rows * params->window.kernel_cols * params->group_inputs;
    const int32_t padded_outputs = (params->group_outputs + 3) / 4 * 4;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    window from = {.params = params, .offsets = offsets};
    float *out = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        from.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, from.rows, offsets);
        from.memory = op->in[0]->memory;
        from.to = (mcud_channels_s8w){
            .weights = params->weights,
            .scale = params->scale,
            .bias = params->bias,
            .channels = params->group_outputs,
            .depth = depth,
            .act = {params->act.min, params->act.max},
        };
        for (int32_t group = 0; group < params->groups; group++) {
            convolve_row(&from, out + group * params->group_outputs);
            from.to.weights += padded_outputs * depth;
            from.to.scale += padded_outputs;
            from.to.bias += padded_outputs;
            from.memory += params->group_inputs * (int32_t)sizeof(float);
        }
        out += params->dims.output_cols * params->dims.output_channels;
    }
}
