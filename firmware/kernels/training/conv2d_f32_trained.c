#include "conv2d_f32_trained.h"

#include "mcud_clamp_f32.h"
#include "mcud_lines_f32.h"
#include "mcud_window.h"

/* A pixel of the output, and its window in the input. */
typedef struct {
    const mcud_conv2d_f32_trained_params *params;
    const float *weights;
    const float *bias;
    mcud_window_place place;
} pixel;

/* Adds the products of the window and `lines` output channels, whose weights begin at `weights`. */
static void add_window(const pixel *from, const float *weights, int32_t lines, float sums[4])
{
    const mcud_window *const window = &from->params->window;
    const mcud_window_place *const place = &from->place;
    const int32_t channels = from->params->dims.input_channels;
    const int32_t pitch = window->kernel_rows * window->kernel_cols * channels;
    const int32_t taps = place->cols.end - place->cols.first;
    const int32_t runs = window->dilation_cols == 1 ? 1 : taps;
    const int32_t values = window->dilation_cols == 1 ? taps * channels : channels;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = row;
        const float *w = weights + (r * window->kernel_cols + place->cols.first) * channels;
        for (int32_t run = 0; run < runs; run++, x += window->dilation_cols * channels, w += values) {
            if (lines == 4) {
                mcud_add_lines_4_f32(x, w, pitch, values, sums);
            } else {
                for (int32_t line = 0; line < lines; line++) {
                    sums[line] = mcud_add_line_f32(x, w + line * pitch, values, sums[line]);
                }
            }
        }
    }
}

static void one_pixel(const pixel *from, float *out)
{
    const mcud_conv2d_f32_trained_params *params = from->params;
    const int32_t depth =
        params->window.kernel_rows * params->window.kernel_cols * params->dims.input_channels;
    for (int32_t k = 0; k < params->dims.output_channels; k += 4) {
        const int32_t left = params->dims.output_channels - k;
        const int32_t lines = left < 4 ? left : 4;
        float sums[4] = {0.0f};
        memcpy(sums, from->bias + k, (size_t)lines * sizeof *sums);
        add_window(from, from->weights + k * depth, lines, sums);
        for (int32_t line = 0; line < lines; line++) {
            out[k + line] = mcud_clamp_f32(sums[line], params->act.min, params->act.max);
        }
    }
}

void mcud_conv2d_f32_trained(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_trained_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    pixel from = {.params = params, .weights = mcud_row(op->in[1], 0), .bias = mcud_row(op->in[2], 0)};
    from.place.memory = op->in[0]->memory;
    from.place.offsets = offsets;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        from.place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, from.place.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            from.place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            from.place.first_byte = (left + from.place.cols.first * params->window.dilation_cols) * pixel_bytes;
            one_pixel(&from, out);
            out += params->dims.output_channels;
        }
    }
}
