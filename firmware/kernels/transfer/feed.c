#include "feed.h"

void mcud_feed(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_feed_params *params = op->params;
    params->feed((uint32_t)params->input, first_row, end_row - first_row, mcud_row(op->out, first_row));
}
