#include "clip_mask_s8.h"

void mcud_clip_mask_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_clip_mask_s8_params *params = op->params;
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t first = params->first;
    const int32_t last = params->last;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *clipped = mcud_row(op->in[0], row);
        uint8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i += 8) {
            const int32_t left = params->row_elements - i;
            uint32_t bits = 0;
            for (int32_t bit = 0; bit < (left < 8 ? left : 8); bit++) {
                bits |= (uint32_t)(clipped[i + bit] >= first && clipped[i + bit] <= last) << bit;
            }
            out[i / 8] = (uint8_t)bits;
        }
    }
}
