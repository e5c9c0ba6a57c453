/* Copies each unit of the output from its place in the input.
 *
 * in[0]    [...][...], rows of whole units
 * out      [...][row_units][unit_elements]
 */
#ifndef MCUD_GATHER_H
#define MCUD_GATHER_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows; /* [...][row_units], the input row of each unit */
    const uint16_t *units; /* [...][row_units], the number of the unit in that row */
    int32_t row_units;
    int32_t unit_elements;
    int32_t element_bytes; /* 1, 2 or 4 */
} mcud_gather_params;

mcud_kernel mcud_gather;

#endif
