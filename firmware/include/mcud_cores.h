/* One program on several cores that share memory: a tape for each, and flags that say how far each one is.
 *
 * A tape has parts of the program's steps in the program's order. Between two cores there are only counters: a core
 * publishes the number of its finished parts (release), another waits for that number (acquire). Nothing is locked.
 *
 * Whoever runs the program provides the four functions at the end. On a board of mcudeploy its HAL does; for your own
 * chip, with C11 or GNU C:
 *
 *   static struct { mcud_core_work *work; void *argument; uint32_t posted, served; } box[CORES];
 *
 *   void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
 *   {
 *       box[core].work = work;
 *       box[core].argument = argument;
 *       __atomic_store_n(&box[core].posted, box[core].posted + 1u, __ATOMIC_RELEASE);
 *       wake the core;                  Arm: dsb, sev (RP2040, RP2350: __dsb(); __sev()); FreeRTOS: xTaskNotifyGive
 *   }
 *
 *   int32_t mcud_core_is_busy(uint32_t core)
 *   {
 *       return __atomic_load_n(&box[core].served, __ATOMIC_ACQUIRE) != box[core].posted;
 *   }
 *
 *   core n, with its own stack and its FPU on:
 *   for (;;) {
 *       uint32_t posted = __atomic_load_n(&box[n].posted, __ATOMIC_ACQUIRE);
 *       if (posted == box[n].served) {
 *           sleep until it is woken;    Arm: wfe; FreeRTOS: ulTaskNotifyTake
 *           continue;
 *       }
 *       box[n].work(box[n].argument);
 *       __atomic_store_n(&box[n].served, posted, __ATOMIC_RELEASE);
 *       mcud_core_wake();
 *   }
 *
 * All cores must see all memory of the program alike: no core through a private data cache.
 */
#ifndef MCUD_CORES_H
#define MCUD_CORES_H

#include "mcud.h"

/* As `op` of a part: wait until core `first_row` has done `end_row` parts. */
#define MCUD_CORE_WAIT ((mcud_code)-1)

/* Computes rows [first_row, end_row) of the operator ops[op]; or waits. */
typedef struct {
    mcud_code entry; /* of the schedule, which contains this part */
    mcud_code op;
    mcud_code first_row;
    mcud_code end_row;
} mcud_part;

typedef struct {
    const mcud_part *parts;
    uint32_t count;
} mcud_lane;

/* The work of a core, and the number of finished parts of its tape. */
typedef struct {
    const struct mcud_cores *program;
    const mcud_lane *lane;
    const mcud_part *next;
    uint32_t end_entry;
    uint32_t done;
} mcud_core_state;

typedef struct mcud_cores {
    /* mcud_run_cores; by a pointer, so that firmware for one core links without it */
    void (*run)(const struct mcud_cores *program, uint32_t first_entry, uint32_t end_entry);
    const mcud_op *ops;
    const mcud_lane *lanes; /* of each core */
    mcud_core_state *state; /* of each core */
    uint32_t count;         /* of cores, 2 or more */
} mcud_cores;

/* Runs entries [first_entry, end_entry) of the schedule on all cores; called on core 0. All earlier entries are done.
 * Returns when every core is done. */
void mcud_run_cores(const mcud_cores *program, uint32_t first_entry, uint32_t end_entry);

typedef void mcud_core_work(void *argument);

/* Lets core `core` (1 or more, not busy) call work(argument). Core `core` sees everything that the calling core wrote
 * before. */
void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument);

/* 1 until work(argument) on core `core` has returned, then 0: the calling core now sees what that core wrote. */
int32_t mcud_core_is_busy(uint32_t core);

/* Ends mcud_core_wait() on all other cores. On a core that does not wait, the next mcud_core_wait() returns at once. */
void mcud_core_wake(void);

/* Waits until another core calls mcud_core_wake(); may return early. A wake since this core's last wait must end it at
 * once: callers test their condition before they wait. */
void mcud_core_wait(void);

#endif
