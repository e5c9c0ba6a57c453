/* The host has one compute unit, which computes the shares of all units of a board. */
#include "mcud_unit.h"

void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)unit;
    op->kernel(op, first_row, end_row);
}
