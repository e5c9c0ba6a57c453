#include "quantize_s16.h"

static int16_t quantized(float value, float scale)
{
    const float steps = value / scale;
    if (!(steps > -32768.0f)) { /* also NaN, which becomes 0 */
        return steps <= -32768.0f ? INT16_MIN : 0;
    }
    if (steps >= 32767.0f) {
        return INT16_MAX;
    }
    const int32_t whole = (int32_t)steps; /* towards zero; the rest is exact */
    const float rest = steps - (float)whole;
    return (int16_t)(whole + (rest >= 0.5f) - (rest <= -0.5f));
}

void mcud_quantize_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_quantize_s16_params params = *(const mcud_quantize_s16_params *)op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            out[i] = quantized(in[i], params.scale);
        }
    }
}
