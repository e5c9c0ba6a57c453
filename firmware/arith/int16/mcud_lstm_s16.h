/* The parts of the kernel lstm_s8 that also exist by vectors (MVE); both give the same results, bit for bit.
 *
 *   mcud_lstm_product  products of one step with the weights of all gates
 *   mcud_lstm_update   the next states of all cells
 */
#ifndef MCUD_LSTM_S16_H
#define MCUD_LSTM_S16_H

#include "mcud_dot_row_s8.h"
#include "mcud_fixed_s16.h"
#include "mcud_quant.h"

enum { MCUD_GATES = 4 };

/* Weights of all gates, with their biases and scales. */
typedef struct {
    const int32_t *weights; /* records of mcud_dot_row_s8: a word is four int8 weights */
    const int32_t *biases;  /* [MCUD_GATES][hidden, in fours] */
    const int32_t *scales;  /* [MCUD_GATES][2]: multiplier and exponent */
} mcud_lstm_weights;

/* The parameters of the step from gates to states, see lstm_s8.h. */
typedef struct {
    int32_t hidden;
    int32_t cell_bits;
    int32_t cell_clip;
    int32_t multiplier;
    int32_t exponent;
    int32_t zero_point;
} mcud_lstm_cells;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_lstm_s16_mve.h"
#else
#include "mcud_lstm_s16_c.h"
#endif

#endif
