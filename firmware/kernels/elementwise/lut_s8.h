/* out = table[in + 128], int8: any function of one value.
 *
 * in[0]    int8 [rows][row_elements]
 * out      int8 [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_LUT_S8_H
#define MCUD_LUT_S8_H

#include "mcud.h"

typedef struct {
    const int8_t *table; /* [256] */
    int32_t row_elements;
} mcud_lut_s8_params;

mcud_kernel mcud_lut_s8;

#endif
