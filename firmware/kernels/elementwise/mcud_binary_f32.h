/* The binary operators of float: all but the function itself. */
#ifndef MCUD_BINARY_F32_H
#define MCUD_BINARY_F32_H

#include "mcud.h"
#include "mcud_clamp_f32.h"
#include "mcud_operand.h"
#include "mcud_params.h"

typedef struct {
    const float *a; /* constant operand, or NULL */
    const float *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    mcud_act_f32 act;
} mcud_binary_f32_params;

typedef float mcud_binary_f32_function(float a, float b);

/* One pixel. */
static inline void mcud_binary_f32_pixel(const mcud_binary_f32_params *params,
                                         mcud_binary_f32_function *function, const float *a,
                                         const float *b, float *out)
{
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t a_step = params->broadcast.a_channel_step;
    const int32_t b_step = params->broadcast.b_channel_step;
    const float low = params->act.min;
    const float high = params->act.max;
    for (const float *end = out + params->broadcast.channels; out < end; out++) {
        *out = mcud_clamp_f32(function(*a, *b), low, high);
        a += a_step;
        b += b_step;
    }
}

/* A kernel's body. `function` is known when this is inlined, and inlined in turn. */
static inline void mcud_binary_f32(const mcud_op *op, int32_t first_row, int32_t end_row,
                                   mcud_binary_f32_function *function)
{
    const mcud_binary_f32_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_operand_f32(params->a, tensors.a, row, params->broadcast.a_row_step);
        const float *b = mcud_operand_f32(params->b, tensors.b, row, params->broadcast.b_row_step);
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            mcud_binary_f32_pixel(params, function, a, b, out);
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
}

#endif
