/* Matrix product of two activations, int16, with sums of 64 bits.
 *
 * in[0]    int16_t [rows][m][k]
 * in[1]    int16_t [rows][k][n] if batched, else [k][m][n] with k rows; if transposed, k and n are swapped
 * out      int16_t [rows][m][n]
 *
 * A sum becomes a result as mcud_scale_wide of mcud_quant_s16.h states.
 */
#ifndef MCUD_MATMUL_S16_H
#define MCUD_MATMUL_S16_H

#include "mcud.h"

typedef struct {
    int32_t batched; /* 1: row r of in[1] is the matrix for row r; 0: a row has one line of each of m matrices */
    int32_t m;       /* lines of a row */
    int32_t k;
    int32_t n;
    int32_t transposed; /* 1: the lines of in[1] are its columns */
    int32_t left_shift; /* of sums, 0..15; not 0 only for scales of 0.25 and more */
    int32_t multiplier;
    int32_t shift; /* 33..94 */
} mcud_matmul_s16_params;

mcud_kernel mcud_matmul_s16;

#endif
