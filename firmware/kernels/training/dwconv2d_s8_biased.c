#include "dwconv2d_s8_biased.h"

#include "mcud_quant_f32.h"
#include "mcud_window.h"

/* Returns the sum of one channel of a pixel. */
static int32_t one_channel(const mcud_dwconv2d_s8_biased_params *params, const mcud_window_place *place,
                           int32_t input_channel, int32_t channel)
{
    const int32_t pitch = params->dims.output_channels;
    const int32_t x_pitch = params->window.dilation_cols * params->dims.input_channels;
    const int32_t zero_point = params->input_zero_point;
    int32_t sum = 0;
    for (int32_t r = place->rows.first; r < place->rows.end; r++) {
        const uint8_t *row = place->memory + place->offsets[r] + place->first_byte;
        const int8_t *x = (const int8_t *)row + input_channel;
        const int8_t *w = params->weights + (r * params->window.kernel_cols + place->cols.first) * pitch + channel;
        for (int32_t s = place->cols.first; s < place->cols.end; s++) {
            sum += (*x - zero_point) * *w;
            x += x_pitch;
            w += pitch;
        }
    }
    return sum;
}

void mcud_dwconv2d_s8_biased(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_biased_params *params = op->params;
    const float *const bias = mcud_row(op->in[1], 0);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte =
                (left + place.cols.first * params->window.dilation_cols) * params->dims.input_channels;
            int32_t k = 0;
            for (int32_t c = 0; c < params->dims.input_channels; c++) {
                for (int32_t m = 0; m < params->multiplier; m++, k++) {
                    const int32_t sum = one_channel(params, &place, c, k);
                    const float value = (float)sum * params->weight_scale[k] + bias[k];
                    out[k] = (int8_t)mcud_quantized(value, params->scale, params->zero_point, params->act.min,
                                                    params->act.max);
                }
            }
            out += params->dims.output_channels;
        }
    }
}
