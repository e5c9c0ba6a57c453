/* The loops of float operators with two operands; each kernel adds its function. */
#ifndef MCUD_BINARY_F32_H
#define MCUD_BINARY_F32_H

#include "mcud.h"
#include "mcud_eights_f32.h"
#include "mcud_operand.h"
#include "mcud_params.h"
#include "mcud_simd_f32.h"

typedef struct {
    const float *a; /* constant operand, or NULL */
    const float *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    mcud_act_f32 act;
} mcud_binary_f32_params;

typedef float mcud_binary_f32_function(float a, float b);

/* See mcud_eights_f32.h. */
typedef int32_t mcud_binary_f32_eights(const mcud_pairs_f32 *pairs, int32_t count, float *out);

/* A kernel's function of two values, and its function of eight pairs of values, or NULL. */
typedef struct {
    mcud_binary_f32_function *of;
    mcud_binary_f32_eights *eights;
} mcud_binary_f32_functions;

/* Computes the first results of a pixel, eight at a time, and returns their number. A broadcast value is used eight
 * times. */
static inline int32_t mcud_binary_f32_by_eight(const mcud_binary_f32_params *params, mcud_binary_f32_eights *eights,
                                               const float *a, const float *b, float *out)
{
    const int32_t a_step = params->broadcast.a_channel_step;
    const int32_t b_step = params->broadcast.b_channel_step;
    mcud_pairs_f32 pairs = {a, b, 8 * a_step, 8 * b_step};
    float same[8];
    if (params->broadcast.channels < 8 || a_step + b_step == 0) {
        return 0;
    }
    if (a_step + b_step == 1) {
        const float value = a_step == 0 ? *a : *b;
        for (int32_t i = 0; i < 8; i++) {
            same[i] = value;
        }
        *(a_step == 0 ? &pairs.a : &pairs.b) = same;
    }
    const int32_t count = eights(&pairs, params->broadcast.channels, out);
    const float low = params->act.min;
    const float high = params->act.max;
    if (low > -INFINITY || high < INFINITY) {
        for (int32_t i = 0; i < count; i += 4) {
            mcud_clamp_4_f32(out + i, low, high, out + i);
        }
    }
    return count;
}

static inline void mcud_binary_f32_pixel(const mcud_binary_f32_params *params, mcud_binary_f32_functions functions,
                                         const float *a, const float *b, float *out)
{
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t a_step = params->broadcast.a_channel_step;
    const int32_t b_step = params->broadcast.b_channel_step;
    const float low = params->act.min;
    const float high = params->act.max;
    const float *const end = out + params->broadcast.channels;
    if (functions.eights != NULL) {
        const int32_t count = mcud_binary_f32_by_eight(params, functions.eights, a, b, out);
        a += count * a_step;
        b += count * b_step;
        out += count;
    }
    for (; out < end; out++) {
        *out = mcud_clamp_f32(functions.of(*a, *b), low, high);
        a += a_step;
        b += b_step;
    }
}

/* A kernel's body. The caller passes constant `functions`, so that the compiler inlines this and them. */
static inline void mcud_binary_f32(const mcud_op *op, int32_t first_row, int32_t end_row,
                                   mcud_binary_f32_functions functions)
{
    const mcud_binary_f32_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_operand_f32(params->a, tensors.a, row, params->broadcast.a_row_step);
        const float *b = mcud_operand_f32(params->b, tensors.b, row, params->broadcast.b_row_step);
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            mcud_binary_f32_pixel(params, functions, a, b, out);
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
}

#endif
