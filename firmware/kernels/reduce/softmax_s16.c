#include "softmax_s16.h"

#include "mcud_quant.h"
#include "mcud_table_s16.h"

/* The number of zero bits above the highest bit that is set; value > 0. */
static int32_t leading_zeros(int32_t value)
{
    int32_t bits = 0;
    for (uint32_t rest = (uint32_t)value; rest < 0x80000000u; rest <<= 1) {
        bits++;
    }
    return bits;
}

static void softmax(const mcud_softmax_s16_params *params, const int16_t *x, int16_t *y)
{
    int32_t largest = INT16_MIN;
    for (int32_t i = 0; i < params->count; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    int32_t sum = 0; /* in units of 2^-15, as the values are */
    for (int32_t i = 0; i < params->count; i++) {
        const int32_t scaled = mcud_scale_twice(x[i] - largest, params->multiplier, params->exponent);
        const int32_t value = mcud_interpolate_s16(params->exponentials, mcud_clamp(scaled + INT16_MAX, INT16_MIN, INT16_MAX));
        y[i] = (int16_t)value;
        sum += value;
    }
    const int32_t zeros = leading_zeros(sum);
    const int32_t normal = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14); /* 1 to 2, in units of 2^-16 */
    /* the index of a table is signed: -32768 stands for 1, 32767 for nearly 2 */
    const int32_t above = mcud_clamp(normal - (1 << 16) - (1 << 15), INT16_MIN, INT16_MAX);
    const int32_t reciprocal = mcud_interpolate_s16(params->reciprocals, above);
    const int32_t shift = 31 - zeros;
    for (int32_t i = 0; i < params->count; i++) {
        const int32_t result = (int32_t)(((int64_t)y[i] * reciprocal + ((int64_t)1 << (shift - 1))) >> shift);
        y[i] = (int16_t)mcud_clamp(result, 0, INT16_MAX);
    }
}

void mcud_softmax_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_s16_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *x = mcud_row(op->in[0], row);
        int16_t *y = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            softmax(params, x, y);
            x += params->count;
            y += params->count;
        }
    }
}
