/* Matrix product of two activations, int8.
 *
 * in[0]    int8 [rows][m][k]
 * in[1]    int8 [rows][k][n] if batched, else [k][m][n] with k rows
 * out      int8 [rows][m][n]
 *
 * The accumulator fits 32 bits; requantised as mcud_quant.h states.
 */
#ifndef MCUD_MATMUL_S8_H
#define MCUD_MATMUL_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t batched; /* 1: row r of in[1] is the matrix for row r; 0: a row has one line of each of m matrices */
    int32_t m;       /* lines of a row */
    int32_t k;
    int32_t n;
    int32_t a_zero_point;
    int32_t b_zero_point;
    mcud_quant quant;
} mcud_matmul_s8_params;

mcud_kernel mcud_matmul_s8;

#endif
