/* The measurer: answers requests on the serial line for ever; on a board of a chain, computes payloads meanwhile. */
#ifndef MCUD_MEASURER_LOOP_H
#define MCUD_MEASURER_LOOP_H

/* Called once, first. */
void measurer_start(void);

/* Answers what has arrived, then waits for more; called for ever. */
void measurer_turn(void);

#endif
