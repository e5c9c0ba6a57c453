#include "pad.h"

#include <string.h>

static void fill(const mcud_pad_params *params, void *target, int32_t elements)
{
    if (params->element_bytes == 1) {
        memset(target, params->fill, (size_t)elements);
        return;
    }
    if (params->element_bytes == 2) {
        int16_t *halves = target;
        for (int32_t i = 0; i < elements; i++) {
            halves[i] = (int16_t)params->fill;
        }
        return;
    }
    int32_t *words = target;
    for (int32_t i = 0; i < elements; i++) {
        words[i] = params->fill;
    }
}

/* Writes one line of channels: padding, the input's channels, padding. */
static void pad_channels(const mcud_pad_params *params, const uint8_t *source, uint8_t *target)
{
    const int32_t before = params->channel_before;
    const int32_t first = before > 0 ? before : 0;
    const int32_t reach = before + params->channels;
    const int32_t end = reach < params->out_channels ? reach : params->out_channels;
    const int32_t bytes = params->element_bytes;
    if (end <= first) {
        fill(params, target, params->out_channels);
        return;
    }
    fill(params, target, first);
    memcpy(target + first * bytes, source + (first - before) * bytes, (size_t)((end - first) * bytes));
    fill(params, target + end * bytes, params->out_channels - end);
}

void mcud_pad(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_pad_params *params = op->params;
    const int32_t out_bytes = params->out_channels * params->element_bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        uint8_t *target = mcud_row(op->out, row);
        const int32_t in_row = row - params->row_before;
        if (in_row < 0 || in_row >= params->rows) {
            fill(params, target, params->out_cols * params->out_channels);
            continue;
        }
        const uint8_t *source = mcud_row(op->in[0], in_row);
        for (int32_t col = 0; col < params->out_cols; col++) {
            const int32_t in_col = col - params->col_before;
            if (in_col < 0 || in_col >= params->cols) {
                fill(params, target, params->out_channels);
            } else {
                pad_channels(params, source + in_col * params->channels * params->element_bytes, target);
            }
            target += out_bytes;
        }
    }
}
