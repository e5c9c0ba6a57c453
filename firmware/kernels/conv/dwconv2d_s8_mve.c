#include "dwconv2d_s8_mve.h"

#include "mcud_vector.h"

static inline void multiply(const mcud_dwconv2d_s8_mve_params *params, const mcud_windows_alike *windows, int8_t *y)
{
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    mcud_vector_taps(windows->taps, windows->tap_count, windows->at, windows->step, windows->count,
                     params->packed_weights, &finish, y, windows->channels);
}

#define MULTIPLY multiply
#include "dwconv2d_s8_taps.h"

void mcud_dwconv2d_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    multiply_windows(op, first_row, end_row);
}
