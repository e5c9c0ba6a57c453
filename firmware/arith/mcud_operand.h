/* Operands of a binary operator: an input tensor or a constant in flash, broadcast by steps of 0. */
#ifndef MCUD_OPERAND_H
#define MCUD_OPERAND_H

#include <stddef.h>

#include "mcud.h"
#include "mcud_params.h"

/* The tensors of the operands; NULL for an operand that is a constant. */
typedef struct {
    const mcud_tensor *a;
    const mcud_tensor *b;
} mcud_operands;

/* The inputs are the operands that are not constants, in order. */
static inline mcud_operands mcud_find_operands(const mcud_op *op, const void *constant_a, const void *constant_b)
{
    const mcud_tensor *const *next = op->in;
    mcud_operands tensors = {NULL, NULL};
    if (constant_a == NULL) {
        tensors.a = *next++;
    }
    if (constant_b == NULL) {
        tensors.b = *next;
    }
    return tensors;
}

/* The operand's values for a row of the output; row_step is 0 if one row serves all. */
static inline const int8_t *mcud_operand_s8(const int8_t *constant, const mcud_tensor *tensor, int32_t row,
                                            int32_t row_step)
{
    if (constant != NULL) {
        return constant + row * row_step;
    }
    return mcud_row(tensor, row_step == 0 ? 0 : row);
}

/* The same for 16-bit values. */
static inline const int16_t *mcud_operand_s16(const int16_t *constant, const mcud_tensor *tensor, int32_t row,
                                              int32_t row_step)
{
    if (constant != NULL) {
        return constant + row * row_step;
    }
    return mcud_row(tensor, row_step == 0 ? 0 : row);
}

/* The same for float. */
static inline const float *mcud_operand_f32(const float *constant, const mcud_tensor *tensor, int32_t row,
                                            int32_t row_step)
{
    if (constant != NULL) {
        return constant + row * row_step;
    }
    return mcud_row(tensor, row_step == 0 ? 0 : row);
}

#endif
