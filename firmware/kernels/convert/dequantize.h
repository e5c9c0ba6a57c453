/* int8 to float: scale * (in - zero_point).
 *
 * in[0]    int8 [rows][row_elements]
 * out      float [rows][row_elements]
 */
#ifndef MCUD_DEQUANTIZE_H
#define MCUD_DEQUANTIZE_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    int32_t zero_point;
    float scale;
} mcud_dequantize_params;

mcud_kernel mcud_dequantize;

#endif
