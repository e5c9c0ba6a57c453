/* int16_t to int32_t.
 *
 * in[0]    int16_t [...][...]
 * out      int32_t [...][...]
 */
#ifndef MCUD_S16_TO_S32_H
#define MCUD_S16_TO_S32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_s16_to_s32_params;

mcud_kernel mcud_s16_to_s32;

#endif
