#include "rescale_s16.h"

#include "mcud_quant.h"

static int32_t rescaled(const mcud_rescale_s16_params *p, int32_t value)
{
    const int32_t steps = value - p->in_zero_point;
    const int32_t scaled = steps >= 0 ? mcud_scale_twice(steps, p->multiplier, p->exponent)
                                      : mcud_scale_twice(p->below_sign * steps, p->below_multiplier, p->below_exponent);
    return mcud_clamp(p->out_zero_point + scaled, p->act.min, p->act.max);
}

void mcud_rescale_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_rescale_s16_params params = *(const mcud_rescale_s16_params *)op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const void *in = mcud_row(op->in[0], row);
        void *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            const int32_t value = params.in_bytes == 1 ? ((const int8_t *)in)[i] : ((const int16_t *)in)[i];
            const int32_t result = rescaled(&params, value);
            if (params.out_bytes == 1) {
                ((int8_t *)out)[i] = (int8_t)result;
            } else {
                ((int16_t *)out)[i] = (int16_t)result;
            }
        }
    }
}
