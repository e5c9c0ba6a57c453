#include "take.h"

#include <stddef.h>
#include <string.h>

static void take_bytes(const uint8_t *source, const uint16_t *starts, uint8_t *target, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        target[i] = source[starts[i]];
    }
}

static void take_halves(const void *source, const uint16_t *starts, void *target, int32_t count)
{
    const uint16_t *from = source;
    uint16_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[starts[i]];
    }
}

static void take_words(const void *source, const uint16_t *starts, void *target, int32_t count)
{
    const uint32_t *from = source;
    uint32_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[starts[i]];
    }
}

/* Copies all runs, whose starts count from `source`; returns the target after them. */
static uint8_t *take_runs(const mcud_take_params *params, const uint8_t *source, uint8_t *target)
{
    for (int32_t i = 0; i < params->run_count; i++) {
        const int32_t bytes = params->sizes[i] * params->element_bytes;
        memcpy(target, source + params->starts[i] * params->element_bytes, (size_t)bytes);
        target += bytes;
    }
    return target;
}

void mcud_take(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_take_params *params = op->params;
    const int32_t count = params->run_count;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint8_t *in = mcud_row(op->in[0], params->rows[row]);
        uint8_t *target = mcud_row(op->out, row);
        for (int32_t outer = 0; outer < params->outer_count; outer++) {
            const uint8_t *source = in + params->outers[outer] * params->element_bytes;
            if (params->sizes != NULL) {
                target = take_runs(params, source, target);
                continue;
            }
            if (params->element_bytes == 1) {
                take_bytes(source, params->starts, target, count);
            } else if (params->element_bytes == 2) {
                take_halves(source, params->starts, target, count);
            } else {
                take_words(source, params->starts, target, count);
            }
            target += count * params->element_bytes;
        }
    }
}
