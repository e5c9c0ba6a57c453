/* int32_t to int8_t: the lowest 8 bits, without saturation.
 *
 * in[0]    int32_t [...][...]
 * out      int8_t [...][...]
 */
#ifndef MCUD_S32_TO_S8_H
#define MCUD_S32_TO_S8_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_s32_to_s8_params;

mcud_kernel mcud_s32_to_s8;

#endif
