#include "pcan.h"

/* The gain of a noise, 16 bits: interpolated by a parabola between powers of two. gains[4 * bits - 6] is the first of
 * three coefficients for noises with `bits` bits. */
static int32_t gain_of(const int16_t *gains, uint32_t noise)
{
    if (noise <= 2) {
        return gains[noise];
    }
    int32_t bits = 2;
    while (bits < 32 && noise >> bits != 0) {
        bits++;
    }
    const int16_t *curve = gains + 4 * bits - 6;
    const uint32_t place = (bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FFu;
    const int32_t slope = (int32_t)((uint32_t)((curve[2] * (int32_t)place) >> 5) + ((uint32_t)curve[1] << 5));
    const int32_t rise = (int32_t)((uint32_t)slope * place + (1u << 14)) >> 15;
    return (int16_t)(uint16_t)(uint32_t)(rise + curve[0]);
}

/* x^2 / 2^20 below 2^13, then a straight line. */
static uint32_t compressed(uint32_t x)
{
    return x < (2u << 12) ? (x * x) >> 20 : (x >> 6) - (1u << 6);
}

void mcud_pcan(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_pcan_params *params = op->params;
    const uint32_t *in = mcud_row(op->in[0], first_row);
    const uint32_t *noise = mcud_row(op->in[1], first_row);
    uint32_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->channels; i++) {
        const uint64_t gain = (uint32_t)gain_of(params->gains, noise[i]);
        out[i] = compressed((uint32_t)((in[i] * gain) >> params->shift));
    }
}
