#include "mcud_cores.h"
#ifdef MCUD_CHECK_OWNER
#include <stddef.h>

#include "mcud_owner_slots.h"
#endif

/* mcudeploy/execution/cycles/marks.c finds the functions APART by their names: the compiler must neither inline nor
 * clone them. */
#if defined(__GNUC__) && !defined(__clang__)
#define APART __attribute__((noinline, noclone))
#else
#define APART __attribute__((noinline))
#endif

/* Instructions of this function count as waiting. */
APART static void mcud_core_spin(const uint32_t *done, uint32_t wanted)
{
    while (mcud_load_acquire(done) < wanted) {
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
    mcud_store_release(&state->done, done);
    mcud_core_wake();
}

APART static void mcud_core_run(void *argument)
{
    mcud_core_state *const state = argument;
    const mcud_cores *const program = state->program;
    const mcud_part *const end = state->lane->parts + state->lane->count;
    for (const mcud_part *part = state->next; part < end && part->entry < state->end_entry; part++) {
        if (part->op == MCUD_CORE_WAIT) {
            const uint32_t *const done = &program->state[part->first_row].done;
            if (mcud_load_acquire(done) < part->end_row) {
                mcud_core_spin(done, part->end_row);
            }
            continue;
        }
        const mcud_op *const op = &program->ops[part->op];
        op->kernel(op, (int32_t)part->first_row, (int32_t)part->end_row);
        mcud_core_publish(state, state->done + 1u);
    }
}

/* Sets the next part to the first one at or after an entry; earlier parts count as done. */
static void set_out(mcud_core_state *state, uint32_t first_entry)
{
    const mcud_part *const end = state->lane->parts + state->lane->count;
    state->done = 0;
    for (state->next = state->lane->parts; state->next < end && state->next->entry < first_entry; state->next++) {
        state->done += state->next->op != MCUD_CORE_WAIT;
    }
}

void mcud_run_cores(const mcud_cores *program, uint32_t first_entry, uint32_t end_entry)
{
#ifdef MCUD_CHECK_OWNER
    mcud_owner_slot *const slot = mcud_owner_enter(program, NULL, 0, 0); /* each call counts as a whole program */
    if (slot == NULL) {
        return;
    }
#endif
    for (uint32_t core = 0; core < program->count; core++) {
        mcud_core_state *const state = &program->state[core];
        state->program = program;
        state->lane = &program->lanes[core];
        state->end_entry = end_entry;
        set_out(state, first_entry);
    }
    for (uint32_t core = 1; core < program->count; core++) {
        mcud_core_start(core, mcud_core_run, &program->state[core]);
    }
    mcud_core_run(&program->state[0]);
    for (uint32_t core = 1; core < program->count; core++) {
        mcud_core_join(core);
    }
#ifdef MCUD_CHECK_OWNER
    mcud_owner_leave(slot, 1, 1);
#endif
}
