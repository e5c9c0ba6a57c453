/* Times steps and tiles, and finds how deep the stack went. */
#ifndef MCUD_TIMING_H
#define MCUD_TIMING_H

#include "mcud.h"

/* Ticks between two readings of the counter with nothing in between; subtracted from every time. */
uint32_t timing_empty(void);

/* Runs steps [first, end) of the model; returns their ticks. No step may take 2^32 ticks or more; on several cores no call
 * may. */
uint64_t timing_run(const mcud_model *model, uint32_t first, uint32_t end);

/* Runs one step and returns its ticks, less `empty` (timing_empty). */
uint32_t timing_step(const mcud_model *model, uint32_t step, uint32_t empty);

/* Calls op's kernel `repeat` times for rows [first_row, end_row); returns the ticks of all calls. */
uint64_t timing_call(const mcud_op *op, int32_t first_row, int32_t end_row, uint32_t repeat);

/* stack_paint() fills the free stack with a pattern; stack_measure() then returns how many bytes below the stack's top
 * were used. At most MCUD_PAINT_BYTES are painted, so that a board with megabytes of free stack stays quick. */
enum { MCUD_PAINT_BYTES = 65536 };
void stack_paint(void);
uint32_t stack_measure(void);

#endif
