#include "conv2d_s8_1x1_sums.h"

#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_dot_row_s8.h"

/* The input channels of a group: [begin, begin + count), and whether they are the last. */
typedef struct {
    int32_t begin;
    int32_t count;
    int is_last;
} group_channels;

/* Adds one channel of all pixels, by a record of one channel. */
MCUD_NOINLINE void add_one(const mcud_op *op, const group_channels *group, const int32_t *record, int32_t *sums,
                           int8_t *out)
{
    const mcud_conv2d_s8_1x1_sums_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t *const w = record + 1 + group->begin / 4;
    const int32_t *const factors = record + 1 + params->input_channels / 4;
    const int32_t factor[2] = {factors[0], factors[MCUD_FACTORS - 1]};
    const int8_t *x = mcud_row(op->in[0], 0);
    for (uint32_t pixel = 0; pixel < op->rows; pixel++) {
        int32_t sum = group->begin == 0 ? record[0] : *sums;
        mcud_dot_one_s8(x, group->count, w, &sum);
        *sums = sum;
        if (group->is_last) {
            out[pixel * (uint32_t)params->output_channels] = MCUD_RESULT_S8(sum, factor, 1, &finish);
        }
        x += group->count;
        sums += params->output_channels;
    }
}

void mcud_conv2d_s8_1x1_sums(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_sums_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t channels = params->output_channels;
    const int32_t begin = first_row * params->group_values;
    const int32_t end = end_row * params->group_values;
    const int is_last = end >= params->input_channels;
    const group_channels group = {begin, (is_last ? params->input_channels : end) - begin, is_last};
    int32_t *const sums = mcud_row(op->scratch, 0);
    int8_t *const out = mcud_row(op->out, 0);
    const int8_t *const pixels = mcud_row(op->in[0], 0);
    const int32_t *record = params->packed_weights;
    int32_t k = 0;
    for (; k < channels - 3; k += 4) {
        const int32_t *const w = record + 4 + begin;
        const int32_t *const factors = record + 4 + params->input_channels;
        const int8_t *x = pixels;
        int32_t at = k;
        for (uint32_t pixel = 0; pixel < op->rows; pixel++) {
            const int8_t *const ends[2] = {x + (group.count & 28), x + group.count};
            int32_t *const own = sums + at;
            if (begin == 0) {
                memcpy(own, record, 4 * sizeof *own);
            }
            mcud_sum_1x4(x, ends, w, own);
            if (is_last) {
                mcud_finish_row_s8(own, factors, &finish, out + at);
            }
            x += group.count;
            at += channels;
        }
        record = factors + 4 * MCUD_FACTORS;
    }
    for (; k < channels; k++) {
        add_one(op, &group, record, sums + k, out + k);
        record += 1 + params->input_channels / 4 + MCUD_FACTORS;
    }
    if (is_last) {
        mcud_clip_s8(out, (int32_t)op->rows * channels, params->act.min, params->act.max);
    }
}
