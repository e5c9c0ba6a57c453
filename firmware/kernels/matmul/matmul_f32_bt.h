/* Matrix product of two activations, the second one transposed, float.
 *
 * in[0]    float [rows][m][k]
 * in[1]    float [rows][n][k] if batched, else [n][k] with n rows
 * out      float [rows][m][n]
 */
#ifndef MCUD_MATMUL_F32_BT_H
#define MCUD_MATMUL_F32_BT_H

#include "mcud.h"

typedef struct {
    int32_t batched; /* 1: each row has its own matrix; 0: m is 1 and rows are the rows of the matrices */
    int32_t m;
    int32_t k;
    int32_t n;
} mcud_matmul_f32_bt_params;

mcud_kernel mcud_matmul_f32_bt;

#endif
