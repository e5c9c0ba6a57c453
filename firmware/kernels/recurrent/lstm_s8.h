/* Long short-term memory, int8 with a cell state of 16 bits, with the bits of TFLite's kernel.
 *
 * in[0]    int8 [1][steps][inputs]
 * in[1]    int8 [1][1][hidden], h; updated in place
 * in[2]    int16_t [1][1][hidden], the cell state; updated in place
 * scratch  int16_t [4][hidden, in fours]
 * out      int8 [1][steps][hidden], h of every step, or [1][1][hidden], the last one
 *
 * The gates are input, forget, candidate and output. A gate's sum has 3 integer bits (mcud_fixed_s16.h). It adds the
 * product with the input, then the product with h, each rounded twice and narrowed to 16 bits. Zero points are folded
 * into the biases. Sums of 32 bits do not overflow.
 */
#ifndef MCUD_LSTM_S8_H
#define MCUD_LSTM_S8_H

#include "mcud.h"

typedef struct {
    const int32_t *input_weights;     /* for each gate: records of mcud_dot_row_s8 for four cells, without biases */
    const int32_t *recurrent_weights; /* the same */
    const int32_t *biases;            /* [2][4][hidden, in fours]: of the products with the input, and with h */
    const int32_t *scales;            /* [2][4][2]: their multipliers and exponents */
    int32_t steps;
    int32_t inputs;
    int32_t hidden;
    int32_t last;      /* 1: out has the last step only */
    int32_t cell_bits; /* integer bits of the cell state, 0..6 */
    int32_t cell_clip; /* the cell state stays in [-cell_clip, cell_clip]; 32768 for none */
    int32_t multiplier; /* scales the output gate times tanh of the cell state to h */
    int32_t exponent;
    int32_t zero_point; /* of h */
} mcud_lstm_s8_params;

mcud_kernel mcud_lstm_s8;

#endif
