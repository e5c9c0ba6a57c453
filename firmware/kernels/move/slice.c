#include "slice.h"

#include <string.h>

static void take_bytes(const uint8_t *source, int32_t step, uint8_t *target, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        target[i] = source[i * step];
    }
}

static void take_halves(const void *source, int32_t step, void *target, int32_t count)
{
    const uint16_t *from = source;
    uint16_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[i * step];
    }
}

static void take_words(const void *source, int32_t step, void *target, int32_t count)
{
    const uint32_t *from = source;
    uint32_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[i * step];
    }
}

void mcud_slice(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_slice_params *params = op->params;
    const int32_t bytes = params->element_bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint8_t *in = mcud_row(op->in[0], params->first_row + row * params->row_step);
        uint8_t *target = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            const uint8_t *source = in + (params->first_element + col * params->col_step) * bytes;
            if (params->channel_step == 1) {
                memcpy(target, source, (size_t)(params->channels * bytes));
            } else if (bytes == 1) {
                take_bytes(source, params->channel_step, target, params->channels);
            } else if (bytes == 2) {
                take_halves(source, params->channel_step, target, params->channels);
            } else {
                take_words(source, params->channel_step, target, params->channels);
            }
            target += params->channels * bytes;
        }
    }
}
