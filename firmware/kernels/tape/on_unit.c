#include "on_unit.h"

void mcud_on_unit(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_on_unit_params *params = op->params;
    mcud_unit_run(params->unit, params->op, first_row, end_row);
}
