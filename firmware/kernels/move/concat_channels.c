#include "concat_channels.h"

#include "mcud_move.h"

/* The channels that a row takes of one input. */
typedef struct {
    const uint16_t *channels;
    int32_t count;
    int32_t pixels;
    int32_t step;  /* from a pixel of the input to the next one */
    int32_t pitch; /* from a pixel of the output to the next one */
} part;

/* Copies adjacent channels, by words: they are few, so a call of the C library would take longer. */
static void copy(const part *of, const uint8_t *source, uint8_t *target)
{
    const int32_t step = of->step - of->count;
    const int32_t skip = of->pitch - of->count;
    for (int32_t left = of->pixels; left > 0; left--, source += step, target += skip) {
        int32_t bytes = of->count;
        for (; bytes >= 4; bytes -= 4, source += 4, target += 4) {
            memcpy(target, source, 4);
        }
        for (; bytes > 0; bytes--) {
            *target++ = *source++;
        }
    }
}

/* Copies channels in any order. */
static void pick(const part *of, const uint8_t *source, uint8_t *target)
{
    const uint16_t *const last = of->channels + of->count;
    const int32_t skip = of->pitch - of->count;
    for (int32_t left = of->pixels; left > 0; left--, source += of->step, target += skip) {
        const uint16_t *channel = of->channels;
        for (; last - channel >= 4; channel += 4, target += 4) {
            target[0] = source[channel[0]];
            target[1] = source[channel[1]];
            target[2] = source[channel[2]];
            target[3] = source[channel[3]];
        }
        for (; channel < last; channel++) {
            *target++ = source[*channel];
        }
    }
}

/* Copies channels through a table, whose entry for 0 is at `middle`. */
static void look_up(const part *of, const int8_t *source, int8_t *target, const int8_t *middle)
{
    const uint16_t *const last = of->channels + of->count;
    const int32_t skip = of->pitch - of->count;
    for (int32_t left = of->pixels; left > 0; left--, source += of->step, target += skip) {
        const uint16_t *channel = of->channels;
        for (; last - channel >= 4; channel += 4, target += 4) {
            target[0] = middle[source[channel[0]]];
            target[1] = middle[source[channel[1]]];
            target[2] = middle[source[channel[2]]];
            target[3] = middle[source[channel[3]]];
        }
        for (; channel < last; channel++) {
            *target++ = middle[source[*channel]];
        }
    }
}

void mcud_concat_channels(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_concat_channels_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        uint8_t *target = mcud_row(op->out, row);
        part of = {.channels = params->channels, .pixels = params->pixels, .pitch = params->out_channels};
        for (int32_t input = 0; input < params->inputs; input++) {
            const int8_t *table = mcud_table(params->tables, params->table_of_input, params->table_count, input);
            const uint8_t *source = mcud_row(op->in[input], row);
            of.count = params->taken[input];
            of.step = params->in_channels[input];
            if (table != NULL) {
                look_up(&of, (const int8_t *)source, (int8_t *)target, table + 128);
            } else if (of.channels[of.count - 1] - of.channels[0] == of.count - 1) {
                copy(&of, source + of.channels[0], target);
            } else {
                pick(&of, source, target);
            }
            target += of.count;
            of.channels += of.count;
        }
    }
}
