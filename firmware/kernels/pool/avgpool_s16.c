#include "avgpool_s16.h"

#include "mcud_window.h"

static void one_pixel(const mcud_avgpool_s16_params *params, const mcud_window_place *place, int16_t *out)
{
    const int32_t pitch = params->window.dilation_cols * params->dims.channels;
    const int32_t count = (place->rows.end - place->rows.first) * (place->cols.end - place->cols.first);
    for (int32_t c = 0; c < params->dims.channels; c++) {
        int32_t sum = 0;
        for (int32_t r = place->rows.first; r < place->rows.end; r++) {
            const void *row = place->memory + place->offsets[r] + place->first_byte;
            const int16_t *x = (const int16_t *)row + c;
            for (int32_t s = place->cols.first; s < place->cols.end; s++, x += pitch) {
                sum += *x;
            }
        }
        out[c] = (int16_t)((sum > 0 ? sum + count / 2 : sum - count / 2) / count);
    }
}

void mcud_avgpool_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_s16_params *params = op->params;
    const int32_t pixel_bytes = params->dims.channels * (int32_t)sizeof(int16_t);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int16_t *out = mcud_row(op->out, first_row);
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        place.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, place.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            place.cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            place.first_byte = (left + place.cols.first * params->window.dilation_cols) * pixel_bytes;
            one_pixel(params, &place, out);
            out += params->dims.channels;
        }
    }
}
