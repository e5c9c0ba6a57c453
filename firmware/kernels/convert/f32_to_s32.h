/* float to int32_t: rounds towards zero and saturates; NaN becomes 0.
 *
 * in[0]    float [...][...]
 * out      int32_t [...][...]
 */
#ifndef MCUD_F32_TO_S32_H
#define MCUD_F32_TO_S32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_f32_to_s32_params;

mcud_kernel mcud_f32_to_s32;

#endif
