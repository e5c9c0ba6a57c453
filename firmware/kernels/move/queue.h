/* A queue that lives from one run to the next: its oldest bytes leave, and the newest ones are appended.
 *
 * in[0]    the newest bytes, one row
 * in[1]    the queue, one row, oldest bytes first
 * out      the queue after the run; may be the memory of in[1]
 */
#ifndef MCUD_QUEUE_H
#define MCUD_QUEUE_H

#include "mcud.h"

typedef struct {
    int32_t kept;   /* bytes that stay in the queue */
    int32_t newest; /* bytes that are appended; the same number leaves */
} mcud_queue_params;

mcud_kernel mcud_queue;

#endif
