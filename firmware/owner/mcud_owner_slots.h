/* The programs that use their arenas, for mcud_owner.h. */
#ifndef MCUD_OWNER_SLOTS_H
#define MCUD_OWNER_SLOTS_H

#include "mcud.h"

typedef struct {
    volatile uint32_t taken;        /* 1 while a task runs steps of the program, or reads the slot */
    const void *volatile program;   /* NULL in a free slot */
    const mcud_arena *arenas;
    uint32_t arena_count;
    uint32_t next; /* of the program, which comes next */
} mcud_owner_slot;

/* Call it before steps from `first` on. Returns their slot, or NULL if they must not run. */
mcud_owner_slot *mcud_owner_enter(const void *program, const mcud_arena *arenas, uint32_t arena_count, uint32_t first);

/* Call it after the steps below `next`. `steps`: the number of all steps of the program. */
void mcud_owner_leave(mcud_owner_slot *slot, uint32_t next, uint32_t steps);

#endif
