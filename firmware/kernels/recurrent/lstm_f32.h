/* Long short-term memory, float: gates i, o, f and the candidate, in this order.
 *
 * in[0]    float [1][steps][inputs]
 * in[1]    float [1][1][hidden], h, if it is not a constant
 * in[2]    the same shape, c, if it is not a constant
 * scratch  see mcud_recurrent_f32.h
 * out      float [1][steps][hidden], or [1][1][hidden]
 */
#ifndef MCUD_LSTM_F32_H
#define MCUD_LSTM_F32_H

#include "mcud_recurrent_f32.h"

typedef mcud_recurrent_f32_params mcud_lstm_f32_params;

mcud_kernel mcud_lstm_f32;

#endif
