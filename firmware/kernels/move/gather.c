#include "gather.h"

#include <string.h>

static void gather_bytes(const uint8_t *source, const uint16_t *units, uint8_t *target, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        target[i] = source[units[i]];
    }
}

static void gather_halves(const void *source, const uint16_t *units, void *target, int32_t count)
{
    const uint16_t *from = source;
    uint16_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[units[i]];
    }
}

static void gather_words(const void *source, const uint16_t *units, void *target, int32_t count)
{
    const uint32_t *from = source;
    uint32_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[units[i]];
    }
}

/* Copies `count` units of one input row; returns the target after them. */
static uint8_t *gather_units(const mcud_gather_params *params, const uint8_t *source, const uint16_t *units,
                             uint8_t *target, int32_t count)
{
    const int32_t bytes = params->unit_elements * params->element_bytes;
    if (params->unit_elements != 1) {
        for (int32_t i = 0; i < count; i++) {
            memcpy(target + i * bytes, source + units[i] * bytes, (size_t)bytes);
        }
    } else if (bytes == 1) {
        gather_bytes(source, units, target, count);
    } else if (bytes == 2) {
        gather_halves(source, units, target, count);
    } else {
        gather_words(source, units, target, count);
    }
    return target + count * bytes;
}

void mcud_gather(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_gather_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint16_t *rows = params->rows + row * params->row_units;
        const uint16_t *units = params->units + row * params->row_units;
        uint8_t *target = mcud_row(op->out, row);
        int32_t end = 0;
        for (int32_t first = 0; first < params->row_units; first = end) {
            while (end < params->row_units && rows[end] == rows[first]) {
                end++;
            }
            const uint8_t *source = mcud_row(op->in[0], rows[first]);
            target = gather_units(params, source, units + first, target, end - first);
        }
    }
}
