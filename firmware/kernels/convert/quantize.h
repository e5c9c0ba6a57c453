/* float to int8: rint(in / scale) + zero_point, half to even, saturated; NaN becomes -128.
 *
 * in[0]    float [rows][row_elements]
 * out      int8 [rows][row_elements]
 */
#ifndef MCUD_QUANTIZE_H
#define MCUD_QUANTIZE_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    int32_t zero_point;
    float scale;
} mcud_quantize_params;

mcud_kernel mcud_quantize;

#endif
