/* float to int16_t: in / scale, halves rounded away from zero, saturated; NaN becomes 0.
 *
 * in[0]    float [rows][row_elements]
 * out      int16_t [rows][row_elements]
 */
#ifndef MCUD_QUANTIZE_S16_H
#define MCUD_QUANTIZE_S16_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float scale;
} mcud_quantize_s16_params;

mcud_kernel mcud_quantize_s16;

#endif
