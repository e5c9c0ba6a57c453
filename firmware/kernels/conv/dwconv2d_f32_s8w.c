#include "dwconv2d_f32_s8w.h"

#include "mcud_simd_f32.h"
#include "mcud_window.h"

/* Returns one channel of a pixel. */
static float one_channel(const mcud_dwconv2d_f32_s8w_params *params, const mcud_window_place *place,
                         int32_t input_channel, int32_t channel)
{
    const int32_t pitch = params->dims.output_channels;
    const int32_t x_pitch = params->window.dilation_cols * params->dims.input_channels;
    const float scale = params->scale[channel];
    float sum = params->bias[channel];
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const void *row = place->memory + place->offsets[r] + place->first_byte;
        const float *x = (const float *)row + input_channel;
        const int8_t *w =
            params->weights + (r * params->window.kernel_cols + place->cols.first) * pitch + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++) {
            sum = mcud_mac_f32(*x, (float)*w * scale, sum);
            x += x_pitch;
            w += pitch;
        }
    }
    return mcud_clamp_f32(sum, params->act.min, params->act.max);
}

void mcud_dwconv2d_f32_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_s8w_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
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
            int32_t k = 0;
            for (int32_t c = 0; c < params->dims.input_channels; c++) {
                for (int32_t m = 0; m < params->multiplier; m++, k++) {
                    out[k] = one_channel(params, &place, c, k);
                }
            }
            out += params->dims.output_channels;
        }
    }
}
