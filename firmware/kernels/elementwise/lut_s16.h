/* A function of 16-bit values: interpolates between 513 entries of a table, as TFLite does.
 *
 * in[0]    int16_t [rows][row_elements]
 * out      int16_t [rows][row_elements]; may be the input
 */
#ifndef MCUD_LUT_S16_H
#define MCUD_LUT_S16_H

#include "mcud.h"

typedef struct {
    const int16_t *table; /* [513]: results for -32768, -32640, ... 32640, 32767 */
    int32_t row_elements;
} mcud_lut_s16_params;

mcud_kernel mcud_lut_s16;

#endif
