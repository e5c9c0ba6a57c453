/* One compute unit that computes the steps of all units: on the host, or on a board whose other units exist only in the
 * plan. */
#include "mcud_unit.h"

void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)unit;
    op->kernel(op, first_row, end_row);
}
