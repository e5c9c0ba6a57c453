/* Matrix product of two activations, float.
 *
 * in[0]    float [rows][m][k]
 * in[1]    float [rows][k][n] if batched, else [k][m][n] with k rows
 * out      float [rows][m][n]
 */
#ifndef MCUD_MATMUL_F32_H
#define MCUD_MATMUL_F32_H

#include "mcud.h"

typedef struct {
    int32_t batched; /* 1: row r of in[1] is the matrix for row r; 0: a row has one line of each of m matrices */
    int32_t m;       /* lines of a row */
    int32_t k;
    int32_t n;
} mcud_matmul_f32_params;

mcud_kernel mcud_matmul_f32;

#endif
