/* Steps that another compute unit runs, such as the second core of a chip.
 *
 * In a program that uses several units, the record of such a step has the kernel mcud_on_unit, which hands the rows to
 * mcud_unit_run(). Whoever runs the program provides that function; everything else stays as with one core. On a
 * board of mcudeploy its HAL does; for your own chip there is a mailbox below:
 *
 *   static mcud_mailbox box;            in memory that both cores see without a cache
 *
 *   void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row)
 *   {
 *       mcud_mailbox_post(&box, op, first_row, end_row);
 *       wake the other core;            Arm: dsb, sev
 *       while (!mcud_mailbox_done(&box)) {
 *           wait for an event;          Arm: wfe
 *       }
 *   }
 *
 *   the other core:                     with its own stack, and its FPU on
 *   for (;;) {
 *       if (mcud_mailbox_serve(&box)) {
 *           wake the first core;
 *       } else {
 *           wait for an event;
 *       }
 *   }
 *
 * Both cores use tensors in place, without copies. So both must see the arenas alike, or through caches that steps of
 * the plan clean and invalidate (mcud_cache.h). Both cores call the same kernels: compile these for instructions that
 * both can execute (STM32H747: -mcpu=cortex-m4, fpv4-sp-d16).
 */
#ifndef MCUD_UNIT_H
#define MCUD_UNIT_H

#include <stdint.h>

#include "mcud.h"

/* Computes rows [first_row, end_row) of op's output by op->kernel on compute unit `unit` of the board (0: the one that
 * runs the program). When it returns, the rows are made and the caller sees them. Provided by the platform. */
void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row);

/* Hands one step at a time from one core, which posts, to another, which serves; zero at the start. */
typedef struct {
    const mcud_op *op;
    int32_t first_row;
    int32_t end_row;
    uint32_t posted; /* steps handed over, written by the core that posts */
    uint32_t served; /* steps done, written by the core that serves */
} mcud_mailbox;

/* Hands over a step; the previous one must be done. The serving core sees everything that this core wrote before. */
static inline void mcud_mailbox_post(mcud_mailbox *box, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    box->op = op;
    box->first_row = first_row;
    box->end_row = end_row;
    mcud_store_release(&box->posted, box->posted + 1u);
}

/* 1 when the last posted step is done; this core then sees everything that the step wrote. */
static inline int32_t mcud_mailbox_done(const mcud_mailbox *box)
{
    return mcud_load_acquire(&box->served) == box->posted;
}

/* Runs the step that waits; 0 if there is none. */
static inline int32_t mcud_mailbox_serve(mcud_mailbox *box)
{
    const uint32_t posted = mcud_load_acquire(&box->posted);
    if (posted == box->served) {
        return 0;
    }
    box->op->kernel(box->op, box->first_row, box->end_row);
    mcud_store_release(&box->served, posted);
    return 1;
}

#endif
