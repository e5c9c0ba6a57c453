/* One program on several cores that share memory: a tape for each, and flags that say how far each one is.
 *
 * A tape has parts of the program's steps in the program's order. Between two cores there are only counters: a core
 * publishes how many parts it has done (release), another waits until it has done so many (acquire). Nothing is locked.
 *
 * Whoever runs the program provides the four functions at the end. On a board of mcudeploy its HAL does; for a chip of
 * your own, with C11 or GNU C:
 *
 *   static struct { mcud_core_work *work; const void *argument; uint32_t posted, served; } box[CORES];
 *
 *   void mcud_core_start(uint32_t core, mcud_core_work *work, const void *argument)
 *   {
 *       box[core].work = work;
 *       box[core].argument = argument;
 *       __atomic_store_n(&box[core].posted, box[core].posted + 1u, __ATOMIC_RELEASE);
 *       wake the core;                  RP2040, RP2350: __sev(); STM32H747: HSEM or SEV; ESP32-S3: it spins
 *   }
 *
 *   int32_t mcud_core_is_busy(uint32_t core)
 *   {
 *       return __atomic_load_n(&box[core].served, __ATOMIC_ACQUIRE) != box[core].posted;
 *   }
 *
 *   core n, with a stack of its own and its FPU on:
 *   for (;;) {
 *       uint32_t posted = __atomic_load_n(&box[n].posted, __ATOMIC_ACQUIRE);
 *       if (posted == box[n].served) {
 *           mcud_core_wait();
 *           continue;
 *       }
 *       box[n].work(box[n].argument);
 *       __atomic_store_n(&box[n].served, posted, __ATOMIC_RELEASE);
 *       mcud_core_wake();
 *   }
 *
 * All memory of the program must be such that all cores see it alike: not behind a data cache of one of them.
 */
#ifndef MCUD_CORES_H
#define MCUD_CORES_H

#include "mcud.h"

/* In place of an operator: wait until core `first_row` has done `end_row` parts. */
#define MCUD_AWAIT ((mcud_code)-1)

/* Rows [first_row, end_row) of an operator, by the record `op`; or a wait. */
typedef struct {
    mcud_code entry; /* of the schedule, of which it is a part */
    mcud_code op;
    mcud_code first_row;
    mcud_code end_row;
} mcud_part;

typedef struct {
    const mcud_part *parts;
    uint32_t count;
} mcud_lane;

/* What a core is to do, and how many parts of its tape it has done. */
typedef struct {
    const struct mcud_cores *program;
    const mcud_part *next;
    uint32_t end_entry;
    uint32_t done;
} mcud_core_state;

typedef struct mcud_cores {
    void (*run)(const struct mcud_cores *program, uint32_t first_entry, uint32_t end_entry); /* mcud_run_cores */
    const mcud_op *ops;
    const mcud_lane *lanes; /* of each core */
    mcud_core_state *state; /* of each core */
    uint32_t count;         /* of cores, 2 or more */
} mcud_cores;

/* Runs all parts of entries [first_entry, end_entry) of the schedule, on core 0 and by all others. What the entries
 * before make is there. */
void mcud_run_cores(const mcud_cores *program, uint32_t first_entry, uint32_t end_entry);

typedef void mcud_core_work(const void *argument);

/* Lets a core (1 or more), which is not busy, call work(argument); what this core wrote before is seen by it. */
void mcud_core_start(uint32_t core, mcud_core_work *work, const void *argument);

/* 1 until the call has returned; then what it wrote is seen by this core. */
int32_t mcud_core_is_busy(uint32_t core);

/* Ends the waiting of other cores. */
void mcud_core_wake(void);

/* Waits until another core calls mcud_core_wake(), or less long; never for a call that came before it. */
void mcud_core_wait(void);

#endif
