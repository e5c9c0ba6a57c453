/* Long short-term memory, int16 with int8 weights, with the bits of TensorFlow Lite Micro's kernel.
 *
 * in[0]    int16_t [1][steps][inputs]
 * in[1]    int16_t [1][1][hidden], h; updated in place
 * in[2]    int16_t [1][1][hidden], the cell state; updated in place
 * scratch  int16_t [inputs or hidden, whichever is more, in fours], then [4][hidden, in fours]
 * out      int16_t [1][steps][hidden], h of every step, or [1][1][hidden], the last one
 *
 * The gates are input, forget, candidate and output. A gate's sum has 3 integer bits. It adds the product with the
 * input and the product with h: each has 64 bits, is scaled as mcud_scale_wide states, and narrowed to 16 bits.
 */
#ifndef MCUD_LSTM_S16_H
#define MCUD_LSTM_S16_H

#include "mcud.h"

typedef struct {
    const int32_t *input_weights;     /* for each gate: records of mcud_dot_fours_s16 for four cells, without biases */
    const int32_t *recurrent_weights; /* the same */
    const int32_t *biases;            /* [2][4][hidden, in fours]: lower words, then upper ones */
    const int32_t *scales;            /* [2][4][2]: multipliers and shifts of the products with the input, and with h */
    const uint16_t *table;            /* [256], see mcud_sigmoid_s16.h */
    int32_t steps;
    int32_t inputs;
    int32_t hidden;
    int32_t last;       /* 1: out has the last step only */
    int32_t left_shift; /* of sums, 0..15; not 0 only for scales of 0.25 and more */
    int32_t cell_bits;  /* integer bits of the cell state, 0..6 */
    int32_t cell_clip;  /* the cell state stays in [-cell_clip, cell_clip]; 32768 for none */
    int32_t multiplier; /* scales the output gate times tanh of the cell state to h */
    int32_t exponent;
} mcud_lstm_s16_params;

mcud_kernel mcud_lstm_s16;

#endif
