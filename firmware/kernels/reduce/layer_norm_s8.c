#include "layer_norm_s8.h"

#include <math.h>
#include <string.h>

#include "mcud_normalize_s8.h"

/* `left` has the exponent of 1 / deviation, so that the multiplier keeps its 24 bits. count times a value differs from
 * the centre by at most sqrt(count) deviations, so the shifted difference fits 32 bits. */
static mcud_normal normal_of(const mcud_layer_norm_s8_params *params, const int8_t *in)
{
    const int32_t count = params->count;
    const mcud_sums_s8 sums = mcud_sums_of(in, count);
    const int32_t centre = params->centred != 0 ? sums.values : count * params->input_zero_point;
    const int64_t variance = (int64_t)count * sums.squares - (int64_t)centre * (2 * sums.values - centre);
    const float deviation = sqrtf((float)variance + params->epsilon);
    const int32_t most = params->z_bits + 2;
    mcud_normal by = {centre, 0, 0};
    if (deviation > 0.0f) {
        const float reciprocal = 1.0f / deviation;
        uint32_t bits;
        memcpy(&bits, &reciprocal, sizeof bits);
        const int32_t left = (int32_t)(bits >> 23) - 127 + most;
        const uint32_t mantissa = ((bits & 0x7FFFFFu) | 0x800000u) << 7;
        by.left = left < 0 ? 0 : (left > most ? most : left);
        by.multiplier = left < -30 ? 0 : (int32_t)(left < 0 ? mantissa >> -left : mantissa);
    }
    return by;
}

void mcud_layer_norm_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_layer_norm_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            const mcud_normal by = normal_of(params, in);
            mcud_normalize(&by, in, params->factors, params->count, params->shift, out);
            in += params->count;
            out += params->count;
        }
    }
}
