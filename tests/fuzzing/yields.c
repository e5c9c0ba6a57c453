/* Stands between run_cores.c and the threads that are cores, by --wrap: a thread loses time at random before its first
 * part, and after each. Nothing here orders threads: each one changes only its own variables.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <time.h>

#include "mcud_cores.h"

enum { CORES = 8 }; /* as in host/threads.c */

typedef struct {
    mcud_core_work *work;
    void *argument;
    uint32_t seed;
} late_work;

static late_work late[CORES];
static uint32_t seed_of_run;
static __thread uint32_t state; /* 0: loses no time */

void yields_begin(uint32_t seed);
void __real_mcud_core_start(uint32_t core, mcud_core_work *work, void *argument);
void __real_mcud_core_wake(void);
void __wrap_mcud_core_start(uint32_t core, mcud_core_work *work, void *argument);
void __wrap_mcud_core_wake(void);

/* Of a seed and a core, never 0. */
static uint32_t mixed(uint32_t seed, uint32_t core)
{
    const uint32_t found = (seed * 8u + core + 1u) * 2654435761u;
    return (found ^ (found >> 15)) | 1u;
}

static void lose_time(void)
{
    if (state == 0u) {
        return;
    }
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    const uint32_t way = state >> 28;
    if (way < 2u) {
        const struct timespec some = {0, (long)(state & 0xFFFFu)};
        nanosleep(&some, 0);
        return;
    }
    for (uint32_t left = way < 8u ? way : 0u; left > 0; left--) {
        sched_yield();
    }
}

static void begin_late(void *argument)
{
    const late_work *const it = argument;
    state = it->seed;
    lose_time();
    it->work(it->argument);
}

void yields_begin(uint32_t seed)
{
    seed_of_run = seed;
    state = seed != 0u ? mixed(seed, 0u) : 0u;
}

void __wrap_mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    late[core] = (late_work){work, argument, seed_of_run != 0u ? mixed(seed_of_run, core) : 0u};
    __real_mcud_core_start(core, begin_late, &late[core]);
}

void __wrap_mcud_core_wake(void)
{
    __real_mcud_core_wake();
    lose_time();
}
