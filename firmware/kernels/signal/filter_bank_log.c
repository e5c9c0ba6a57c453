#include "filter_bank_log.h"

enum { LN_2 = 45426 }; /* the natural logarithm of 2, with 16 fractional bits */

/* The logarithm to the base 2 with 16 fractional bits; value > 0. */
static uint32_t log2_of(uint32_t value, const uint16_t *corrections)
{
    uint32_t whole = 0;
    while (value >> whole > 1) {
        whole++;
    }
    const uint32_t above = value - ((uint32_t)1 << whole);
    const int32_t fraction = (int32_t)(whole < 16 ? above << (16 - whole) : above >> (whole - 16));
    const int32_t line = fraction >> 9;
    const int32_t first = corrections[line];
    const int32_t rise = ((corrections[line + 1] - first) * (fraction - (line << 9))) >> 16;
    return (whole << 16) + (uint32_t)(fraction + first + rise);
}

void mcud_filter_bank_log(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_filter_bank_log_params *params = op->params;
    const uint32_t *in = mcud_row(op->in[0], first_row);
    int16_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->channels; i++) {
        const uint32_t value = in[i] << params->shift;
        uint32_t scaled = 0;
        if (value > 1) {
            const uint64_t binary = log2_of(value, params->corrections);
            const uint32_t natural = (uint32_t)((LN_2 * binary + 32768u) >> 16);
            scaled = ((uint32_t)params->scale * natural + 32768u) >> 16;
        }
        out[i] = (int16_t)(scaled < INT16_MAX ? scaled : INT16_MAX);
    }
}
