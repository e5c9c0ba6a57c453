/* The lowest byte of an integer.
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
