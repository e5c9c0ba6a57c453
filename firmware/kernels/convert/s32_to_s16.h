/* int32_t to int16_t: the lower 16 bits, without saturation.
 *
 * in[0]    int32_t [...][...]
 * out      int16_t [...][...]
 */
#ifndef MCUD_S32_TO_S16_H
#define MCUD_S32_TO_S16_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_s32_to_s16_params;

mcud_kernel mcud_s32_to_s16;

#endif
