#include "filter_bank_root.h"

/* Finds the root digit by digit; for sums of 32 bits without arithmetic in 64 bits. */
static uint32_t root_32(uint32_t value)
{
    uint32_t result = 0;
    for (uint32_t bit = (uint32_t)1 << 30; bit != 0; bit >>= 2) {
        const uint32_t trial = result + bit;
        result >>= 1;
        if (value >= trial) {
            value -= trial;
            result += bit;
        }
    }
    return value > result && result != UINT16_MAX ? result + 1 : result;
}

static uint32_t root(uint64_t value)
{
    if (value >> 32 == 0) {
        return root_32((uint32_t)value);
    }
    uint64_t result = 0;
    for (uint64_t bit = (uint64_t)1 << 62; bit != 0; bit >>= 2) {
        const uint64_t trial = result + bit;
        result >>= 1;
        if (value >= trial) {
            value -= trial;
            result += bit;
        }
    }
    return (uint32_t)(value > result && result != UINT32_MAX ? result + 1 : result);
}

void mcud_filter_bank_root(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_filter_bank_root_params *params = op->params;
    const uint32_t *in = mcud_row(op->in[0], first_row);
    const uint32_t bits = (uint32_t)*(const int32_t *)mcud_row(op->in[1], first_row) & 31u;
    uint32_t *out = mcud_row(op->out, first_row);
    uint64_t begun = 0; /* the part of a channel's sum that the previous range contains */
    for (int32_t range = 0; range <= params->channels; range++) {
        const uint32_t *energy = in + params->points[range];
        const int16_t *weights = params->weights + params->places[range];
        const int16_t *rest = params->rest + params->places[range];
        uint64_t sum = begun;
        begun = 0;
        for (int32_t i = 0; i < params->widths[range]; i++) {
            sum += (uint64_t)weights[i] * energy[i];
            begun += (uint64_t)rest[i] * energy[i];
        }
        if (range > 0) {
            out[range - 1] = root(sum) >> bits;
        }
    }
}
