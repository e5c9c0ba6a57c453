/* int32_t to the nearest float, half to even.
 *
 * in[0]    int32_t [...][...]
 * out      float [...][...]
 */
#ifndef MCUD_S32_TO_F32_H
#define MCUD_S32_TO_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_s32_to_f32_params;

mcud_kernel mcud_s32_to_f32;

#endif
