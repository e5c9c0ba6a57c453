#include "softmax_s8_tflite.h"

#include "mcud_clip_s8.h"
#include "mcud_largest.h"

enum { SUM_SHIFT = 12, OUTPUT_SHIFT = 23 };

#define FORTY_EIGHT_SEVENTEENTHS 1515870810 /* with 29 fraction bits */
#define THIRTY_TWO_SEVENTEENTHS 1010580540

/* a * b / 2^31, rounded half up. */
static inline int32_t product(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* Returns 2^31 / (1 + x / 2^31), 0 <= x < 2^31, by three steps of Newton's method on half of the denominator. */
static int32_t reciprocal(int32_t x)
{
    const int32_t half_denominator = (int32_t)(((uint32_t)x + (uint32_t)INT32_MAX + 1) >> 1);
    int32_t y = FORTY_EIGHT_SEVENTEENTHS + product(half_denominator, -THIRTY_TWO_SEVENTEENTHS);
    for (int32_t round = 0; round < 3; round++) {
        y += 4 * product(y, ((int32_t)1 << 29) - product(half_denominator, y));
    }
    return y >= (int32_t)1 << 30 ? INT32_MAX : 2 * y;
}

static void softmax_group(const mcud_softmax_s8_tflite_params *params, const int8_t *in, int8_t *out)
{
    const int32_t *table = params->table;
    const int32_t step = params->step;
    const int32_t count = params->count;
    const int32_t max = mcud_largest(in, count, step);
    uint32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += ((uint32_t)table[max - in[i * step]] + (1u << (SUM_SHIFT - 1))) >> SUM_SHIFT;
    }
    int32_t shift = OUTPUT_SHIFT + SUM_SHIFT;
    for (; sum < (uint32_t)1 << 31; sum += sum) {
        shift--;
    }
    const int32_t scale = reciprocal((int32_t)(sum - ((uint32_t)1 << 31)));
    for (int32_t i = 0; i < count; i++, in += step, out += step) {
        const uint32_t probability = (uint32_t)product(scale, table[max - *in]);
        const uint32_t steps = shift > 31 ? 0 : (probability + ((uint32_t)1 << (shift - 1))) >> shift;
        *out = mcud_saturate_s8((int32_t)steps - 128);
    }
}

void mcud_softmax_s8_tflite(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_s8_tflite_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            softmax_group(params, in, out);
            in += params->group_step;
            out += params->group_step;
        }
    }
}
