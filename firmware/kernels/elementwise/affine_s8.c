#include "affine_s8.h"

#include "mcud_quant.h"

/* The channels of a pixel. */
static void scale_pixel(const mcud_affine_s8_params *params, const int8_t *in, int8_t *out)
{
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t *record = params->records;
    const int32_t low = params->act.min;
    const int32_t high = params->act.max;
    for (const int8_t *end = in + params->channels; in < end; in++, out++) {
        *out = (int8_t)mcud_clamp((*in * record[0] + record[1]) >> record[2], low, high);
        record += 3;
    }
}

void mcud_affine_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_affine_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            scale_pixel(params, in, out);
            in += params->channels;
            out += params->channels;
        }
    }
}
