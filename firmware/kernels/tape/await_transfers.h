/* Waits for transfers that start_transfers has started: see mcud_dma.h. Each wait is a row of this operator, which the
 * tape runs as a step.
 *
 * A program has such an operator for each engine, after all others. It touches no tensors: in, out and scratch may
 * be NULL.
 */
#ifndef MCUD_AWAIT_TRANSFERS_H
#define MCUD_AWAIT_TRANSFERS_H

#include "mcud.h"

typedef struct {
    const uint16_t *pending; /* of each wait: the most transfers that may be unfinished after it */
    uint32_t engine;         /* its number among the board's links */
} mcud_await_transfers_params;

mcud_kernel mcud_await_transfers;

#endif
