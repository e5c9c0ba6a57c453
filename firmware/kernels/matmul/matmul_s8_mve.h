/* Matrix products of two activations by vectors, int8: as matmul_s8 and matmul_s8_bt, for scales under 0.5.
 *
 * in[0]    int8 [rows][m][k]
 * in[1]    int8 as in matmul_s8, or as in matmul_s8_bt if it is transposed
 * out      int8 [rows][m][n]
 * scratch  int32_t [records]: a matrix of in[1] as records of mcud_dot_vector_s8.h; then int8_t [32 * vectors]: ones
 *
 * Each matrix is packed once for all lines that it multiplies. The accumulator fits 32 bits.
 */
#ifndef MCUD_MATMUL_S8_MVE_H
#define MCUD_MATMUL_S8_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t batched; /* 1: row r of in[1] is the matrix for row r; 0: a row has one line of each of m matrices */
    int32_t m;       /* lines of a row */
    int32_t k;
    int32_t n;
    int32_t a_zero_point;
    int32_t b_zero_point;
    mcud_quant quant; /* shift is 32 */
    int32_t transposed;
} mcud_matmul_s8_mve_params;

mcud_kernel mcud_matmul_s8_mve;

#endif
