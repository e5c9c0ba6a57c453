#include "mcud_cores.h"

/* Functions that the emulator's counter knows by their names. */
#if defined(__GNUC__) && !defined(__clang__)
#define APART __attribute__((noinline, noclone))
#else
#define APART __attribute__((noinline))
#endif

/* What is executed here is time that a core waits. */
APART static void mcud_core_spin(const uint32_t *done, uint32_t wanted)
{
    while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < wanted) {
        mcud_core_wait();
    }
}

APART static void mcud_core_join(uint32_t core)
{
    while (mcud_core_is_busy(core)) {
        mcud_core_wait();
    }
}

APART static void mcud_core_publish(mcud_core_state *state, uint32_t done)
{
    __atomic_store_n(&state->done, done, __ATOMIC_RELEASE);
    mcud_core_wake();
}

APART static void mcud_core_run(const void *argument)
{
    const mcud_cores *const program = ((const mcud_core_state *)argument)->program;
    mcud_core_state *const state = &program->state[(const mcud_core_state *)argument - program->state];
    const mcud_lane *const lane = &program->lanes[state - program->state];
    const mcud_part *const end = lane->parts + lane->count;
    for (const mcud_part *part = state->next; part < end && part->entry < state->end_entry; part++) {
        if (part->op == MCUD_AWAIT) {
            const uint32_t *const done = &program->state[part->first_row].done;
            if (__atomic_load_n(done, __ATOMIC_ACQUIRE) < part->end_row) {
                mcud_core_spin(done, part->end_row);
            }
            continue;
        }
        const mcud_op *const op = &program->ops[part->op];
        op->kernel(op, (int32_t)part->first_row, (int32_t)part->end_row);
        mcud_core_publish(state, state->done + 1u);
    }
}

void mcud_run_cores(const mcud_cores *program, uint32_t first_entry, uint32_t end_entry)
{
    for (uint32_t core = 0; core < program->count; core++) {
        mcud_core_state *const state = &program->state[core];
        const mcud_part *const end = program->lanes[core].parts + program->lanes[core].count;
        state->program = program;
        state->end_entry = end_entry;
        state->done = 0;
        for (state->next = program->lanes[core].parts; state->next < end && state->next->entry < first_entry;
             state->next++) {
            state->done += state->next->op != MCUD_AWAIT;
        }
    }
    for (uint32_t core = 1; core < program->count; core++) {
        mcud_core_start(core, mcud_core_run, &program->state[core]);
    }
    mcud_core_run(&program->state[0]);
    for (uint32_t core = 1; core < program->count; core++) {
        mcud_core_join(core);
    }
}
