#include "mcud.h"

void mcud_step(const mcud_model *model, uint32_t step)
{
    const uint32_t code = model->schedule[step];
    const mcud_op *op = &model->ops[code >> model->block_bits];
    const uint32_t block = code & ((1u << model->block_bits) - 1u);
    const uint32_t first = block * op->block_rows;
    const uint32_t left = op->rows - first;
    const uint32_t count = left < op->block_rows ? left : op->block_rows;
    op->kernel(op, (int32_t)first, (int32_t)(first + count));
}

void mcud_run(const mcud_model *model)
{
    for (uint32_t step = 0; step < model->steps; step++) {
        mcud_step(model, step);
    }
}
