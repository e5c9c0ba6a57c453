/* A ring of cores that pass values to each other, as asked over the UART by single letters. */
#include <stdint.h>

#include "line.h"
#include "mcud_board.h"
#include "mcud_cores.h"
#include "mcud_hal.h"

enum { ROUNDS = 40, PARTS = 3 * ROUNDS };

static uint32_t values[2][MCUD_CORES]; /* of even and of odd rounds */
static uint32_t places[MCUD_CORES];    /* an address on the stack of each */
static mcud_part parts[MCUD_CORES][PARTS];
static mcud_lane lanes[MCUD_CORES];
static mcud_core_state state[MCUD_CORES];

/* Rows are cores: each mixes its neighbours' values of the round before, which takes it longer or less long. */
static void mix(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const uint32_t to = op->block_rows;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint32_t core = (uint32_t)row;
        const uint32_t left = values[1u - to][(core + MCUD_CORES - 1u) % MCUD_CORES];
        const uint32_t right = values[1u - to][(core + 1u) % MCUD_CORES];
        volatile float half = 0.5f;
        uint32_t mixed = 31u * left + right + core + (uint32_t)(half * (float)(2u * core));
        for (uint32_t i = 0; i < (left & 63u); i++) {
            mixed = mixed * 1664525u + 1013904223u;
        }
        values[to][core] = mixed;
        places[core] = (uint32_t)(uintptr_t)&left;
    }
}

static void trap(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    (void)end_row;
    __builtin_trap();
}

static const mcud_op ops[] = {{.kernel = mix, .block_rows = 0}, {.kernel = mix, .block_rows = 1}, {.kernel = trap}};

static const mcud_cores ring = {mcud_run_cores, ops, lanes, state, MCUD_CORES};

static void add(mcud_lane *lane, mcud_part *part, uint32_t entry, mcud_code op, uint32_t first_row, uint32_t end_row)
{
    part[lane->count++] = (mcud_part){(mcud_code)entry, op, (mcud_code)first_row, (mcud_code)end_row};
}

/* In each round a core awaits what its neighbours have done in the one before. */
static void make_lanes(uint32_t rounds)
{
    for (uint32_t core = 0; core < MCUD_CORES; core++) {
        mcud_lane *const lane = &lanes[core];
        lane->parts = parts[core];
        lane->count = 0;
        for (uint32_t round = 0; round < rounds; round++) {
            if (round > 0u) {
                add(lane, parts[core], round, MCUD_CORE_WAIT, (core + 1u) % MCUD_CORES, round);
                add(lane, parts[core], round, MCUD_CORE_WAIT, (core + MCUD_CORES - 1u) % MCUD_CORES, round);
            }
            add(lane, parts[core], round, (mcud_code)(round & 1u), core, core + 1u);
        }
    }
}

static void clear(void)
{
    for (uint32_t core = 0; core < MCUD_CORES; core++) {
        values[1][core] = core;
    }
}

static uint32_t digest(uint32_t rounds)
{
    uint32_t sum = 0;
    for (uint32_t core = 0; core < MCUD_CORES; core++) {
        sum = 33u * sum + values[1u - (rounds & 1u)][core];
    }
    return sum & 0xFFFFFFu; /* the host sends what ends with a zero */
}

static uint32_t in_one(uint32_t rounds)
{
    clear();
    mcud_run_cores(&ring, 0, rounds);
    return digest(rounds);
}

static uint32_t in_two(uint32_t rounds, uint32_t first)
{
    clear();
    mcud_run_cores(&ring, 0, first);
    mcud_run_cores(&ring, first, rounds);
    return digest(rounds);
}

static uint32_t alone(uint32_t rounds)
{
    clear();
    for (uint32_t round = 0; round < rounds; round++) {
        mix(&ops[round & 1u], 0, (int32_t)MCUD_CORES);
    }
    return digest(rounds);
}

static uint32_t ticks_of(uint32_t rounds)
{
    const uint32_t start = hal_ticks();
    for (volatile uint32_t left = rounds; left > 0u; left--) {
    }
    return hal_ticks() - start;
}

int main(void)
{
    hal_init();
    for (;;) {
        switch (receive()) {
        case 'R': { /* all, all in two ranges, and what both give on one core */
            const uint32_t rounds = receive_word();
            const uint32_t first = receive_word();
            make_lanes(rounds);
            send_word(in_one(rounds));
            send_word(in_two(rounds, first));
            send_word(alone(rounds));
            break;
        }
        case 'N': { /* many short runs: how many were wrong */
            uint32_t wrong = 0;
            make_lanes(2);
            const uint32_t wanted = alone(2);
            for (uint32_t left = receive_word(); left > 0u; left--) {
                wrong += in_one(2) != wanted;
            }
            send_word(wrong);
            break;
        }
        case 'P': /* where each core's stack is */
            make_lanes(1);
            (void)in_one(1);
            for (uint32_t core = 0; core < MCUD_CORES; core++) {
                send_word(places[core] >> 8);
            }
            break;
        case 'T': /* what a loop takes while the others sleep */
            send_word(ticks_of(receive_word()));
            break;
        case 'F': { /* a fault of one core */
            const uint32_t core = receive_word();
            make_lanes(2);
            parts[core][0].op = 2u;
            (void)in_one(2);
            break;
        }
        default:
            send("?", 1);
        }
    }
}
