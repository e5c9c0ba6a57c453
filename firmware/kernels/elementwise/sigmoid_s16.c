#include "sigmoid_s16.h"

enum { LAST = 255 };

/* The function of a magnitude, times 2^25, whose lowest `bits` bits are interpolated. */
static int32_t interpolated(const uint16_t *table, int32_t magnitude, int32_t bits)
{
    const int32_t place = magnitude >> bits;
    const int32_t rest = magnitude & ((1 << bits) - 1);
    return ((int32_t)table[place] << bits) + rest * (table[place + 1] - table[place]);
}

static int32_t logistic(const uint16_t *table, int32_t value)
{
    const int32_t magnitude = value < 0 ? -value : value;
    const int32_t result = magnitude >> 9 >= LAST ? 0x7fff << 10 : interpolated(table, magnitude, 9);
    return (value < 0 ? (1 << 25) - result + (1 << 9) - 1 : result + (1 << 9)) >> 10;
}

static int32_t tangent(const uint16_t *table, int32_t value)
{
    const int32_t magnitude = value < 0 ? -value : value;
    const int32_t result = magnitude >> 8 >= LAST ? 0xffff << 8 : interpolated(table, magnitude, 8);
    return (value < 0 ? (1 << 23) - result + (1 << 7) - 1 : result - (1 << 23) + (1 << 7)) >> 8;
}

void mcud_sigmoid_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_sigmoid_s16_params params = *(const mcud_sigmoid_s16_params *)op->params;
    const int32_t half = params.shift > 0 ? (int32_t)(1u << (params.shift - 1)) : 0;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            const int32_t value = (in[i] * params.multiplier + half) >> params.shift;
            out[i] = (int16_t)(params.tangent ? tangent(params.table, value) : logistic(params.table, value));
        }
    }
}
