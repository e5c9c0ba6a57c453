#include <stddef.h>

#include "mcud.h"

static inline void run_step(const mcud_op *ops, uint32_t code, uint32_t block_bits)
{
    const mcud_op *op = &ops[code >> block_bits];
    const uint32_t block = code & ((1u << block_bits) - 1u);
    const uint32_t lead = op->out != NULL ? op->out->lead : 0u;
    const int32_t first = (int32_t)(block * op->block_rows - lead); /* negative if the block lacks rows */
    const int32_t end = first + (int32_t)op->block_rows;
    const int32_t rows = (int32_t)op->rows;
    op->kernel(op, first > 0 ? first : 0, end < rows ? end : rows);
}

void mcud_step(const mcud_model *model, uint32_t step)
{
    run_step(model->ops, model->schedule[step], model->block_bits);
}

void mcud_run(const mcud_model *model)
{
    /* Copies, since the compiler must expect a kernel to change *model. */
    const mcud_op *const ops = model->ops;
    const uint32_t block_bits = model->block_bits;
    const mcud_code *const end = model->schedule + model->steps;
    for (const mcud_code *code = model->schedule; code < end; code++) {
        run_step(ops, *code, block_bits);
    }
}
