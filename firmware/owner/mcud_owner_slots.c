#include "mcud_owner_slots.h"

#ifdef MCUD_CHECK_OWNER

#include <stddef.h>

#include "mcud_owner.h"

#ifndef __GNUC__
#error "MCUD_CHECK_OWNER needs GCC or Clang"
#endif

#ifndef MCUD_OWNER_SLOTS
#define MCUD_OWNER_SLOTS 8
#endif

static mcud_owner_slot slots[MCUD_OWNER_SLOTS];
static volatile uint32_t first_error;

__attribute__((weak)) void mcud_owner_fault(uint32_t code, const void *program, const void *holder)
{
    (void)code;
    (void)program;
    (void)holder;
    __builtin_trap();
}

uint32_t mcud_owner_error(void)
{
    const uint32_t code = first_error;
    first_error = MCUD_OWNER_OK;
    return code;
}

/* Takes a slot; returns whether it was free. Cores without an atomic exchange mask interrupts: no other core runs. */
static int take(mcud_owner_slot *slot)
{
    uint32_t before;
#if defined(__ARM_ARCH_6M__)
    uint32_t mask;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask) : : "memory");
    before = slot->taken;
    slot->taken = 1u;
    __asm__ volatile("msr primask, %0" : : "r"(mask) : "memory");
#elif defined(__riscv) && !defined(__riscv_atomic)
    uintptr_t status;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(status) : : "memory");
    before = slot->taken;
    slot->taken = 1u;
    __asm__ volatile("csrs mstatus, %0" : : "r"(status & 8u) : "memory");
#else
    before = __atomic_exchange_n(&slot->taken, 1u, __ATOMIC_SEQ_CST);
#endif
    return before == 0u;
}

static void give(mcud_owner_slot *slot)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    slot->taken = 0u;
}

static mcud_owner_slot *refuse(uint32_t code, const void *program, const void *holder)
{
    if (first_error == MCUD_OWNER_OK) {
        first_error = code;
    }
    mcud_owner_fault(code, program, holder);
    return NULL;
}

/* Arenas of the application may overlap in part. */
static int overlap(const mcud_owner_slot *one, const mcud_arena *arenas, uint32_t arena_count)
{
    for (uint32_t i = 0; i < one->arena_count; i++) {
        const uintptr_t first = (uintptr_t)one->arenas[i].base;
        for (uint32_t j = 0; j < arena_count; j++) {
            const uintptr_t second = (uintptr_t)arenas[j].base;
            if (first < second + arenas[j].bytes && second < first + one->arenas[i].bytes) {
                return 1;
            }
        }
    }
    return 0;
}

/* Returns the program of slot `other` if it is that of `own` or uses some of the same bytes, else NULL. While this
 * reads the slot, its program may end and another take the slot. */
static const void *in_the_way(const mcud_owner_slot *own, const mcud_owner_slot *other)
{
    const void *holder = other->program;
    while (holder != NULL) {
        const mcud_arena *const arenas = other->arenas;
        const uint32_t arena_count = other->arena_count;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (other->program == holder) {
            return holder == own->program || overlap(own, arenas, arena_count) ? holder : NULL;
        }
        holder = other->program;
    }
    return NULL;
}

mcud_owner_slot *mcud_owner_enter(const void *program, const mcud_arena *arenas, uint32_t arena_count, uint32_t first)
{
    mcud_owner_slot *own = NULL;
    for (uint32_t i = 0; i < MCUD_OWNER_SLOTS; i++) {
        if (slots[i].program != program) {
            continue;
        }
        if (!take(&slots[i])) {
            return refuse(MCUD_OWNER_RUNNING, program, program);
        }
        if (slots[i].program == program && (first == 0u || first == slots[i].next)) {
            return &slots[i]; /* between two steps of the program, which continues or begins again */
        }
        const int ended = slots[i].program != program;
        give(&slots[i]);
        if (!ended) {
            return refuse(MCUD_OWNER_ORDER, program, NULL);
        }
    }
    if (first != 0u) {
        return refuse(MCUD_OWNER_ORDER, program, NULL);
    }
    for (uint32_t i = 0; i < MCUD_OWNER_SLOTS && own == NULL; i++) {
        if (slots[i].program == NULL && take(&slots[i])) {
            if (slots[i].program == NULL) {
                own = &slots[i];
            } else {
                give(&slots[i]);
            }
        }
    }
    if (own == NULL) {
        return refuse(MCUD_OWNER_FULL, program, NULL);
    }
    own->arenas = arenas;
    own->arena_count = arena_count;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    own->program = program;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* of two tasks that enter at once, at least one sees the other */
    for (uint32_t i = 0; i < MCUD_OWNER_SLOTS; i++) {
        const void *const holder = &slots[i] == own ? NULL : in_the_way(own, &slots[i]);
        if (holder != NULL) {
            own->program = NULL;
            give(own);
            return refuse(holder == program ? MCUD_OWNER_RUNNING : MCUD_OWNER_ARENA, program, holder);
        }
    }
    return own;
}

void mcud_owner_leave(mcud_owner_slot *slot, uint32_t next, uint32_t steps)
{
    slot->next = next;
    if (next == steps) {
        slot->program = NULL;
    }
    give(slot);
}

#endif
