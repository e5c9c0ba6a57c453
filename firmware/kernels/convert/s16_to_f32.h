/* int16_t to float, exact.
 *
 * in[0]    int16_t [...][...]
 * out      float [...][...]
 */
#ifndef MCUD_S16_TO_F32_H
#define MCUD_S16_TO_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_s16_to_f32_params;

mcud_kernel mcud_s16_to_f32;

#endif
