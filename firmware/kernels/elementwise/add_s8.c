#include "add_s8.h"

#include "mcud_clip_s8.h"
#include "mcud_operand.h"
#include "mcud_rvv.h"
#include "mcud_simd.h"

#if MCUD_RVV
#include "mcud_add_rvv.h"
#endif

static void add(const mcud_add_s8_params *params, const int8_t *a, const int8_t *b, int8_t *out)
{
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t a_step = params->broadcast.a_channel_step;
    const int32_t b_step = params->broadcast.b_channel_step;
    const int32_t a_multiplier = params->quant.a_multiplier;
    const int32_t b_multiplier = params->quant.b_multiplier;
    const int32_t constant = params->quant.constant;
    const int32_t shift = params->quant.shift;
    const int32_t zero_point = params->quant.zero_point;
    const int8_t *const end = out + params->broadcast.channels;
#if MCUD_RVV
    if (a_step == 1 && b_step == 1) {
        mcud_vector_add(a, b, out, params->broadcast.channels, &params->quant);
        return;
    }
#endif
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
    if (a_step == 1 && b_step == 1) {
        for (const int8_t *const last = out + (params->broadcast.channels & ~3); out < last; out += 4, a += 4, b += 4) {
            const int32_t x = mcud_load_word(a);
            const int32_t y = mcud_load_word(b);
            const int32_t s0 = (int8_t)x * a_multiplier + (int8_t)y * b_multiplier + constant;
            const int32_t s1 = (int8_t)(x >> 8) * a_multiplier + (int8_t)(y >> 8) * b_multiplier + constant;
            const int32_t s2 = (int8_t)(x >> 16) * a_multiplier + (int8_t)(y >> 16) * b_multiplier + constant;
            const int32_t s3 = (x >> 24) * a_multiplier + (y >> 24) * b_multiplier + constant;
            out[0] = mcud_saturate_s8(zero_point + mcud_round_even(s0, shift));
            out[1] = mcud_saturate_s8(zero_point + mcud_round_even(s1, shift));
            out[2] = mcud_saturate_s8(zero_point + mcud_round_even(s2, shift));
            out[3] = mcud_saturate_s8(zero_point + mcud_round_even(s3, shift));
        }
    }
#endif
    for (; out < end; out++) {
        const int32_t sum = *a * a_multiplier + *b * b_multiplier + constant;
        *out = mcud_saturate_s8(zero_point + mcud_round_even(sum, shift));
        a += a_step;
        b += b_step;
    }
}

void mcud_add_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_add_s8_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    int8_t *const first = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, params->broadcast.a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, params->broadcast.b_row_step);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            add(params, a, b, out);
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
    const int32_t elements = (end_row - first_row) * params->broadcast.cols * params->broadcast.channels;
    mcud_clip_s8(first, elements, params->act.min, params->act.max);
}
