#include <stddef.h>

#include "mcud.h"
#ifdef MCUD_CHECK_OWNER
#include "mcud_owner_slots.h"
#endif

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

void mcud_run_whole(const mcud_op *op)
{
    op->kernel(op, 0, (int32_t)op->rows);
}

void mcud_step(const mcud_model *model, uint32_t step)
{
#ifdef MCUD_CHECK_OWNER
    mcud_owner_slot *const slot = mcud_owner_enter(model, model->arenas, model->arena_count, step);
    if (slot == NULL) {
        return;
    }
#endif
    run_step(model->ops, model->schedule[step], model->block_bits);
#ifdef MCUD_CHECK_OWNER
    mcud_owner_leave(slot, step + 1u, model->steps);
#endif
}

void mcud_run(const mcud_model *model)
{
#ifdef MCUD_CHECK_OWNER
    mcud_owner_slot *const slot = mcud_owner_enter(model, model->arenas, model->arena_count, 0u);
    if (slot == NULL) {
        return;
    }
#endif
    /* Copies, since the compiler must expect a kernel to change *model. */
    const mcud_op *const ops = model->ops;
    const uint32_t block_bits = model->block_bits;
    const mcud_code *const end = model->schedule + model->steps;
    for (const mcud_code *code = model->schedule; code < end; code++) {
        run_step(ops, *code, block_bits);
    }
#ifdef MCUD_CHECK_OWNER
    mcud_owner_leave(slot, model->steps, model->steps);
#endif
}
