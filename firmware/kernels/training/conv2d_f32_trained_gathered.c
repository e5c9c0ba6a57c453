#include "conv2d_f32_trained_gathered.h"

#include "mcud_trained_f32.h"
#include "mcud_window.h"

/* Multiplies `count` gathered windows. */
static void multiply(mcud_window_pixels_f32 *from, const float *patches, int32_t count, float *out)
{
    const void *memory = patches;
    from->memory = memory;
    mcud_multiply_windows_f32(from, count, out);
}

void mcud_conv2d_f32_trained_gathered(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_trained_gathered_params *params = op->params;
    const mcud_window *const shape = &params->window;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
    const int32_t depth = params->patch_values;
    const uint32_t start = 0;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *const patches = (float *)(void *)(offsets + shape->kernel_rows);
    float *out = mcud_row(op->out, first_row);
    mcud_window_pixels_f32 from = {
        .act = params->act,
        .outputs = params->dims.output_channels,
        .weights = mcud_row(op->in[1], 0),
        .bias = mcud_row(op->in[2], 0),
        .offsets = &start,
        .rows = 1,
        .runs = 1,
        .values = depth,
        .w_row = depth,
        .pitches = {depth, depth},
    };
    mcud_patch_source window = {
        .memory = op->in[0]->memory,
        .offsets = offsets,
        .kernel_rows = shape->kernel_rows,
        .kernel_cols = shape->kernel_cols,
        .tap_bytes = pixel_bytes,
        .tap_pitch = shape->dilation_cols * pixel_bytes,
        .fill = 0,
    };
    int32_t gathered = 0;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * shape->stride_rows - shape->pad_top;
        window.rows = mcud_row_taps(shape, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, shape->dilation_rows, window.rows, offsets);
        int32_t left = -shape->pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += shape->stride_cols) {
            const mcud_taps cols = mcud_col_taps(shape, left, params->dims.input_cols);
            const int32_t first_col = left + cols.first * shape->dilation_cols;
            mcud_gather_window(&window, cols, first_col * pixel_bytes, (uint8_t *)(patches + gathered * depth));
            if (++gathered == 4) {
                multiply(&from, patches, 4, out);
                out += 4 * from.outputs;
                gathered = 0;
            }
        }
    }
    multiply(&from, patches, gathered, out);
}
