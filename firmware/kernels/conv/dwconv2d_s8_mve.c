#include "dwconv2d_s8_mve.h"

#include "mcud_vector.h"

#define MULTIPLY mcud_vector_taps
#include "dwconv2d_s8_taps.h"

void mcud_dwconv2d_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    multiply_windows(op, first_row, end_row);
}
