#include "dwconv2d_f32_trained.h"

#include "mcud_clamp_f32.h"
#include "mcud_simd_f32.h"
#include "mcud_window.h"

/* The channels of a pixel begin as the bias; each tap adds its products. */
static void one_pixel(const mcud_op *op, const mcud_window_place *place, const float *weights, float *out)
{
    const mcud_dwconv2d_f32_trained_params *params = op->params;
    const int32_t outputs = params->dims.output_channels;
    memcpy(out, mcud_row(op->in[2], 0), (size_t)outputs * sizeof *out);
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = row;
        const float *w = weights + (r * params->window.kernel_cols + place->cols.first) * outputs;
        for (int32_t s = place->cols.first; s < place->cols.end; s++, w += outputs) {
            int32_t k = 0;
            for (int32_t c = 0; c < params->dims.input_channels; c++) {
                for (int32_t m = 0; m < params->multiplier; m++, k++) {
                    out[k] = mcud_fused_f32(x[c], w[k], out[k]);
                }
            }
            x += params->window.dilation_cols * params->dims.input_channels;
        }
    }
    for (int32_t k = 0; k < outputs; k++) {
        out[k] = mcud_clamp_f32(out[k], params->act.min, params->act.max);
    }
}

void mcud_dwconv2d_f32_trained(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_trained_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
    const float *weights = mcud_row(op->in[1], 0);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * pixel_bytes;
            one_pixel(op, &place, weights, out);
            out += params->dims.output_channels;
        }
    }
}
