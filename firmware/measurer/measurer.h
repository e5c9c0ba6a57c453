/* The measurer: answers requests on the serial line. On a board of a chain it computes payloads between requests. */
#ifndef MCUD_MEASURER_LOOP_H
#define MCUD_MEASURER_LOOP_H

/* Called once, first. */
void measurer_start(void);

/* Answers the requests that have arrived, then waits for more; call it in an endless loop. */
void measurer_turn(void);

#endif
