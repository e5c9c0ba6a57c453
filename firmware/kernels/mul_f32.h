/* out = clip(a * b, low, high), float.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 where the operand broadcasts.
 */
#ifndef MCUD_MUL_F32_H
#define MCUD_MUL_F32_H

#include "mcud.h"

typedef struct {
    const float *a; /* constant operand, or NULL */
    const float *b; /* constant operand, or NULL */
    int32_t cols;
    int32_t channels;
    int32_t a_row_step;
    int32_t a_col_step;
    int32_t a_channel_step; /* 0 or 1 */
    int32_t b_row_step;
    int32_t b_col_step;
    int32_t b_channel_step; /* 0 or 1 */
    float low;
    float high;
} mcud_mul_f32_params;

mcud_kernel mcud_mul_f32;

#endif
