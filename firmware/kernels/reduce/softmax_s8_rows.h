/* Softmax over rows, int8.
 *
 * in[0]    int8 [rows][row_elements]
 * out      int8 [rows][row_elements]
 *
 * Each row of the output needs every row of the input.
 *
 * The sum of a group's table entries fits 32 bits; one division per group gives its reciprocal, and a
 * probability with 30 fraction bits is requantised as mcud_quant.h states.
 */
#ifndef MCUD_SOFTMAX_S8_ROWS_H
#define MCUD_SOFTMAX_S8_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const uint32_t *table; /* [256]: exp(-scale * (max - q)), fixed point */
    int32_t rows;
    int32_t row_elements;
    mcud_quant quant;
} mcud_softmax_s8_rows_params;

mcud_kernel mcud_softmax_s8_rows;

#endif
