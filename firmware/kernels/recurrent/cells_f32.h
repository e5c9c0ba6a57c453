/* A plain recurrent network, a GRU or an LSTM with functions other than the default ones, clipped sums or coupled
 * gates; float. Gates are in the order of rnn_tanh_f32.h, gru_f32.h and lstm_f32.h, which are faster.
 *
 * in[0]    float [1][steps][inputs]
 * in[1]    float [1][1][hidden], h, unless it is constant
 * in[2]    the same shape, c, unless it is constant
 * scratch  see mcud_recurrent_f32.h
 * out      float [1][steps][hidden], or [1][1][hidden]
 */
#ifndef MCUD_CELLS_F32_H
#define MCUD_CELLS_F32_H

#include "mcud_recurrent_f32.h"

/* The first eight are those of mcud_recurrent_f32_params. */
typedef struct {
    const float *input_weights;
    const float *recurrent_weights;
    const float *candidate_weights;
    const float *bias;
    const float *candidate_bias;
    const float *peepholes;
    const float *initial;
    mcud_cell_f32 cell;
    mcud_curve_f32 gate;      /* of h in a plain network */
    mcud_curve_f32 candidate; /* of the candidate of a GRU or LSTM */
    mcud_curve_f32 state;     /* of c, for h of an LSTM */
    float clip;               /* the sums of the gates stay in [-clip, clip] */
    int32_t gates;            /* 1 in a plain network, 3 in a GRU, 4 in an LSTM */
    int32_t coupled;          /* 0 or 1: the forget gate of an LSTM is 1 minus the input gate */
} mcud_cells_f32_params;

mcud_kernel mcud_cells_f32;

#endif
