#include "conv2d_f32_update.h"

#include "mcud_lines_f32.h"
#include "mcud_window.h"

/* The pixels of the gradient that have one tap inside the input. */
typedef struct {
    const mcud_conv2d_f32_update_params *params;
    const uint8_t *inputs;          /* memory of the input, plus the offset of the tap in a row */
    const uint8_t *gradients;       /* memory of the gradient, plus the offset of its first column */
    const uint32_t *input_rows;     /* offsets, by row of the gradient */
    const uint32_t *gradient_rows;  /* offsets */
    mcud_taps rows;                 /* of the gradient */
    mcud_terms_f32 cols;
} tap_pixels;

/* The weights of output channel k at a tap, one for each input channel. */
static void update_line(const tap_pixels *from, int32_t k, const float *weights, float *out)
{
    const mcud_conv2d_f32_update_params *params = from->params;
    for (int32_t c = 0; c < params->dims.input_channels; c += 4) {
        const int32_t left = params->dims.input_channels - c;
        float sums[4] = {0.0f};
        for (int32_t row = from->rows.first; row < from->rows.end; row++) {
            const void *input = from->inputs + from->input_rows[row];
            const void *gradient = from->gradients + from->gradient_rows[row];
            const float *x = (const float *)input + c;
            const float *g = (const float *)gradient + k;
            if (left >= 4) {
                mcud_add_terms_4_f32(g, x, &from->cols, sums);
                continue;
            }
            for (int32_t i = 0; i < left; i++) {
                sums[i] = mcud_add_terms_f32(g, x + i, &from->cols, sums[i]);
            }
        }
        for (int32_t i = 0; i < (left < 4 ? left : 4); i++) {
            out[c + i] = mcud_fused_f32(params->step, sums[i], params->decay * weights[c + i]);
        }
    }
}

/* The same for a gradient of one pixel: the gradient of a weight is one product, x times g. */
static void update_line_by_pixel(const mcud_conv2d_f32_update_params *params, const float *x, float g,
                                 const float *weights, float *out)
{
    const int32_t inputs = params->dims.input_channels;
    const float decay = params->decay;
    const float factor = params->step * g;
    int32_t c = 0;
    for (; c + 4 <= inputs; c += 4) { /* reads four weights before it writes, as out may be their memory */
        const float w0 = mcud_fused_f32(factor, x[c], decay * weights[c]);
        const float w1 = mcud_fused_f32(factor, x[c + 1], decay * weights[c + 1]);
        const float w2 = mcud_fused_f32(factor, x[c + 2], decay * weights[c + 2]);
        const float w3 = mcud_fused_f32(factor, x[c + 3], decay * weights[c + 3]);
        out[c] = w0;
        out[c + 1] = w1;
        out[c + 2] = w2;
        out[c + 3] = w3;
    }
    for (; c < inputs; c++) {
        out[c] = mcud_fused_f32(factor, x[c], decay * weights[c]);
    }
}

/* The weights of all output channels at the tap (r, s). */
static void update_tap(const tap_pixels *from, int32_t tap, const float *weights, float *out)
{
    const mcud_conv2d_f32_update_params *params = from->params;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * params->dims.input_channels;
    int32_t line = tap * params->dims.input_channels;
    const int32_t inside = from->rows.first < from->rows.end && from->cols.count > 0;
    if (inside && params->output_rows == 1 && params->dims.output_cols == 1) {
        const void *x = from->inputs + from->input_rows[0];
        const void *gradient = from->gradients + from->gradient_rows[0];
        const float *g = gradient;
        for (int32_t k = 0; k < params->dims.output_channels; k++, line += pitch) {
            update_line_by_pixel(params, x, g[k], weights + line, out + line);
        }
        return;
    }
    for (int32_t k = 0; k < params->dims.output_channels; k++, line += pitch) {
        update_line(from, k, weights + line, out + line);
    }
}

void mcud_conv2d_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_f32_update_params *params = op->params;
    const mcud_window *const window = &params->window;
    const int32_t inputs = params->dims.input_channels;
    const int32_t outputs = params->dims.output_channels;
    uint32_t *gradient_rows = mcud_row(op->scratch, first_row);
    uint32_t *input_rows = gradient_rows + params->output_rows;
    const mcud_taps every = {0, params->output_rows};
    mcud_window_rows(op->in[2], 0, 1, every, gradient_rows);
    tap_pixels from = {.params = params, .input_rows = input_rows, .gradient_rows = gradient_rows};
    for (int32_t r = 0; r < window->kernel_rows; r++) {
        const int32_t top = r * window->dilation_rows - window->pad_top;
        from.rows =
            mcud_taps_inside(top, window->stride_rows, params->output_rows, 0, params->dims.input_rows);
        mcud_window_rows(op->in[1], top, window->stride_rows, from.rows, input_rows);
        for (int32_t s = 0; s < window->kernel_cols; s++) {
            const int32_t left = s * window->dilation_cols - window->pad_left;
            const mcud_taps cols =
                mcud_taps_inside(left, window->stride_cols, params->dims.output_cols, 0, params->dims.input_cols);
            const int32_t first = cols.first < cols.end ? left + cols.first * window->stride_cols : 0;
            from.inputs = op->in[1]->memory + first * inputs * (int32_t)sizeof(float);
            from.gradients = op->in[2]->memory + cols.first * outputs * (int32_t)sizeof(float);
            from.cols = (mcud_terms_f32){cols.end - cols.first, outputs, window->stride_cols * inputs};
            update_tap(&from, r * window->kernel_cols + s, mcud_row(op->in[0], first_row),
                       mcud_row(op->out, first_row));
        }
    }
}
