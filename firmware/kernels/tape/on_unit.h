/* Hands its rows to another compute unit and waits for them. */
#ifndef MCUD_ON_UNIT_H
#define MCUD_ON_UNIT_H

#include "mcud_unit.h"

typedef struct {
    const mcud_op *op; /* the operator that the unit runs */
    uint32_t unit;     /* its number among the board's units, 1 or more */
} mcud_on_unit_params;

void mcud_on_unit(const mcud_op *op, int32_t first_row, int32_t end_row);

#endif
