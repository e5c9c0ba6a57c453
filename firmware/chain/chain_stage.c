#include "chain_stage.h"

#include <stddef.h>
#include <string.h>

#include "mcud_hal.h"
#include "mcud_measurer.h"
#include "mcud_ports.h"

static chain_state state;
static uint32_t starts; /* of sessions */
static uint32_t linked;  /* ticks of the links that state.links includes */
static uint64_t running; /* ticks of this run so far */

const chain_state *chain_now(void)
{
    return &state;
}

/* Hands a buffer over, after all accesses to its bytes. */
static void hand_over(chain_buffer *buffer, bool full)
{
    __asm__ volatile("" ::: "memory");
    buffer->full = full;
    hal_port_wake();
}

/* Adds the ticks of the links since the last call, and returns them. */
static uint32_t count_links(void)
{
    const uint32_t ticks = chain_links_ticks() - linked;
    linked += ticks;
    state.links += ticks;
    return ticks;
}

static uint32_t begin_count(void)
{
    const uint32_t first = hal_ticks();
    (void)count_links(); /* between the two readings of the counter, as the call in end_count() */
    return first;
}

/* Adds the ticks of the program since `first`, without those of the links. */
static void end_count(uint32_t first)
{
    const uint32_t links = count_links();
    running += hal_ticks() - first - links;
}

static uint8_t *in_arena(const chain_piece *piece)
{
    return mcud_deployed->arenas[piece->arena].base + piece->offset;
}

static void take_inputs(void)
{
    const uint8_t *const payload = mcud_chain.in->bytes;
    uint8_t *held = mcud_chain.held;
    for (uint32_t i = 0; i < mcud_chain.input_count; i++) {
        const chain_piece *const piece = &mcud_chain.inputs[i];
        memcpy(in_arena(piece), payload + piece->payload, piece->count);
    }
    for (uint32_t i = 0; i < mcud_chain.passed_count; i++) {
        const chain_passed *const passed = &mcud_chain.passed[i];
        memcpy(held, payload + passed->from, passed->count);
        held += passed->count;
    }
}

static void give_outputs(void)
{
    uint8_t *const payload = mcud_chain.out->bytes;
    const uint8_t *held = mcud_chain.held;
    for (uint32_t i = 0; i < mcud_chain.output_count; i++) {
        const chain_piece *const piece = &mcud_chain.outputs[i];
        memcpy(payload + piece->payload, in_arena(piece), piece->count);
    }
    for (uint32_t i = 0; i < mcud_chain.passed_count; i++) {
        const chain_passed *const passed = &mcud_chain.passed[i];
        memcpy(payload + passed->to, held, passed->count);
        held += passed->count;
    }
}

void chain_start(uint32_t session, uint32_t resend_ticks)
{
    const chain_ends ends = {mcud_chain.in, mcud_chain.out, !mcud_chain.first, !mcud_chain.last};
    state = (chain_state){session, 0, 0, 0, 0, 0, false};
    starts++;
    chain_links_start(&ends, session, resend_ticks);
    linked = chain_links_ticks();
    hal_port_wake();
}

/* False if a new session has begun meanwhile. */
static bool run_steps(void (*between)(void), uint32_t start)
{
    for (uint32_t step = 0; step < mcud_deployed->steps; step++) {
        const uint32_t first = begin_count();
        mcud_step(mcud_deployed, step);
        end_count(first);
        chain_links_poll();
        between();
        if (starts != start) {
            return false;
        }
    }
    return true;
}

void chain_turn(void (*between)(void))
{
    if (state.session == 0) {
        return;
    }
    chain_links_poll();
    (void)count_links();
    if (!mcud_chain.in->full) {
        return;
    }
    const uint32_t start = starts;
    __asm__ volatile("" ::: "memory"); /* the buffer is read after its flag */
    state.running = true;
    state.taken++;
    running = 0;
    uint32_t first = begin_count();
    take_inputs();
    end_count(first);
    hand_over(mcud_chain.in, false);
    bool same = run_steps(between, start);
    while (same && mcud_chain.out->full) {
        chain_links_poll();
        between();
        same = starts == start;
    }
    if (same) {
        first = begin_count();
        give_outputs();
        end_count(first);
        state.done++;
        state.ticks += running;
        state.last = hal_ticks();
        state.running = false;
        hand_over(mcud_chain.out, true);
    }
}

bool port_busy(void)
{
    return state.session != 0 && (mcud_chain.in->full || chain_links_wait());
}

bool chain_put(uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    chain_buffer *const in = mcud_chain.in;
    if (state.session == 0 || in->full) {
        return false;
    }
    memcpy(in->bytes + offset, bytes, count);
    if (offset + count == in->count) {
        hand_over(in, true);
    }
    return true;
}

const uint8_t *chain_output(uint32_t offset)
{
    return mcud_chain.out->full ? mcud_chain.out->bytes + offset : NULL;
}

bool chain_next(void)
{
    if (!mcud_chain.last || !mcud_chain.out->full) {
        return false;
    }
    hand_over(mcud_chain.out, false);
    return true;
}
