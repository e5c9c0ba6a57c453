#include "layer_norm_s8.h"

#include <math.h>
#include <string.h>

#include "mcud_simd.h"

/* z of a group's values: (value * count - centre) * 2^left * multiplier / 2^32. */
typedef struct {
    int32_t centre;
    int32_t left;
    int32_t multiplier;
} normal;

static int32_t product_high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* The exponent of 1 / deviation goes to `left`, so that the multiplier keeps its 24 bits. count times a value differs
 * from the centre by at most sqrt(count) deviations, so the shifted difference fits 32 bits. */
static normal normal_of(const mcud_layer_norm_s8_params *params, const int8_t *in)
{
    const int32_t count = params->count;
    int32_t sum = 0;
    int32_t squares = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += in[i];
        squares += in[i] * in[i];
    }
    const int32_t centre = params->centred != 0 ? sum : count * params->input_zero_point;
    const int64_t variance = (int64_t)count * squares - (int64_t)centre * (2 * sum - centre);
    const float deviation = sqrtf((float)variance + params->epsilon);
    const int32_t most = params->z_bits + 2;
    normal by = {centre, 0, 0};
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

static void normalize(const mcud_layer_norm_s8_params *params, const int8_t *in, int8_t *out)
{
    const normal by = normal_of(params, in);
    const uint32_t step = (uint32_t)params->count << by.left;
    const uint32_t centre = (uint32_t)by.centre << by.left;
    const int32_t shift = params->shift;
    const int32_t *factor = params->factors;
    const int32_t *const end = factor + 2 * params->count;
    for (; factor < end; factor += 2) {
        const int32_t value = *in++;
        const int32_t z = product_high((int32_t)(step * (uint32_t)value - centre), by.multiplier);
        *out++ = mcud_saturate_s8((product_high(z, factor[0]) + factor[1]) >> shift);
    }
}

void mcud_layer_norm_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_layer_norm_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            normalize(params, in, out);
            in += params->count;
            out += params->count;
        }
    }
}
