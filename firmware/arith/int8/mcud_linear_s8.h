/* Linear interpolation of int8 values between rows and columns, as resize_linear_s8.h states it. */
#ifndef MCUD_LINEAR_S8_H
#define MCUD_LINEAR_S8_H

#include "mcud_quant.h"
#include "mcud_quant_f32.h"
#include "resize_linear_s8.h"

/* The four neighbours, without their zero point, and the position of the output in the tables. */
typedef struct {
    int32_t near;
    int32_t right;
    int32_t below;
    int32_t far;
    int32_t row;
    int32_t col;
    int32_t col_weight; /* of `right` and `far`, with 22 fraction bits */
} mcud_square_s8;

/* A product that no compiler fuses with an addition: all machines must agree on ties. */
static inline float mcud_linear_product(float a, float b)
{
    const volatile float rounded = a * b;
    return rounded;
}

/* The value next to a tie, as the reference computes it. */
static inline int32_t mcud_linear_tie(const mcud_resize_linear_s8_params *params, const mcud_square_s8 *at)
{
    /* At the last row or column the reference adds two halves of it, which rounds differently. */
    /* Chosen before they are converted: GCC 12 writes a conditional conversion that no assembler takes for MVE. */
    const uint32_t half = UINT32_C(1) << 31;
    const uint32_t row = params->rows[at->row] == params->last_row ? half : params->row_fractions[at->row];
    const uint32_t col = params->cols[at->col] == params->last_col ? half : params->col_fractions[at->col];
    const float row_fraction = (float)row / 4294967296.0f;
    const float col_fraction = (float)col / 4294967296.0f;
    const float row_rest = 1.0f - row_fraction;
    const float col_rest = 1.0f - col_fraction;
    const float scale = params->input_scale;
    const float value = mcud_linear_product(col_rest * row_rest, scale * (float)at->near) +
                        mcud_linear_product(col_fraction * row_rest, scale * (float)at->right) +
                        mcud_linear_product(col_rest * row_fraction, scale * (float)at->below) +
                        mcud_linear_product(col_fraction * row_fraction, scale * (float)at->far);
    return mcud_quantized(value, params->output_scale, params->output_zero_point, -128, 127);
}

/* The value of the output, -128 to 127. */
static inline int32_t mcud_linear_value(const mcud_resize_linear_s8_params *params, const mcud_square_s8 *at)
{
    const int32_t col_rest = ((int32_t)1 << 22) - at->col_weight;
    const int32_t top = at->near * col_rest + at->right * at->col_weight;
    const int32_t bottom = at->below * col_rest + at->far * at->col_weight;
    const int64_t sum = (int64_t)top * params->row_weights[at->row] +
                        (int64_t)bottom * params->next_row_weights[at->row];
    const int64_t up = sum + ((int64_t)1 << (params->shift - 1));
    const int64_t near_tie = (int64_t)1 << (params->shift - 12);
    const int64_t rounded = (up + near_tie) >> params->shift;
    if (rounded != (up - near_tie) >> params->shift) {
        return mcud_linear_tie(params, at);
    }
    return mcud_clamp(params->output_zero_point + (int32_t)rounded, -128, 127);
}

#endif
