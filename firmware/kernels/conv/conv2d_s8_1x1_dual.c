#include "conv2d_s8_1x1_dual.h"

#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_dual_s8.h"

static void multiply_pixel(const mcud_conv2d_s8_1x1_dual_params *params, const int8_t *x, int8_t *y)
{
    const int32_t rest = params->dims.output_channels % MCUD_DUAL_CHANNELS;
    const int32_t *record = params->packed_weights;
    mcud_dual_s8 by = {params->quant.zero_point, x + params->dims.input_channels, NULL};
    by.y_end = y + params->dims.output_channels - rest;
    if (y < by.y_end) {
        record = mcud_multiply_dual(x, record, y, &by);
    }
    if (rest > 0) { /* the output has no room for all results of the last record */
        int8_t last[MCUD_DUAL_CHANNELS];
        y = by.y_end;
        by.y_end = last + MCUD_DUAL_CHANNELS;
        mcud_multiply_dual(x, record, last, &by);
        memcpy(y, last, (size_t)rest);
    }
}

void mcud_conv2d_s8_1x1_dual(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_dual_params *params = op->params;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row * params->stride_rows);
        for (int32_t col = 0; col < params->dims.output_cols; col++) {
            multiply_pixel(params, x, y);
            x += params->pixel_step;
            y += params->dims.output_channels;
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
