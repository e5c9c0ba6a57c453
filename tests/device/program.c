/* A deployed program for tests. Step i adds i + 1 to a counter at the arena's start, and moves the clock of
 * the tests (see WRAP in conftest.py) by what the arena says. Its kernels count, sleep, use stack and crash. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <time.h>

#include "mcud_hal.h"
#include "mcud_measurer.h"

enum { STEPS = 40, STACK_USED = 5000 };

mcud_kernel mcud_count, mcud_crash, mcud_deep, mcud_hang, mcud_sleep;
uint32_t __wrap_hal_ticks(void);

static uint32_t clock_now;

typedef struct {
    uint32_t runs;
    uint32_t sum;
    uint32_t step_ticks;
} counters;

static union {
    counters counters;
    uint64_t align;
    uint8_t bytes[65536];
} arena;

/* 7 ticks for reading it; the kernels add theirs. */
uint32_t __wrap_hal_ticks(void)
{
    clock_now += 7;
    return clock_now;
}

void mcud_count(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    counters *const all = mcud_row(op->out, 0);
    all->runs++;
    all->sum += (uint32_t)end_row;
    clock_now += all->step_ticks + (uint32_t)first_row;
}

void mcud_crash(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    (void)end_row;
    abort();
}

void mcud_deep(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    volatile uint8_t local[STACK_USED];
    for (int32_t i = 0; i < STACK_USED; i++) {
        local[i] = (uint8_t)(first_row + end_row);
    }
    uint8_t *const out = mcud_row(op->out, 0);
    out[0] = local[STACK_USED / 2];
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

void mcud_hang(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    (void)end_row;
    sleep_ms(60000);
}

void mcud_sleep(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    sleep_ms(end_row);
}

static const mcud_offset offsets[STEPS] = {0};
static const mcud_tensor all = {arena.bytes, offsets, 0, STEPS, 0};
static const mcud_op ops[] = {
    {mcud_count, NULL, NULL, &all, NULL, STEPS, 1},
    {mcud_deep, NULL, NULL, &all, NULL, 1, 1},
};
static const mcud_code schedule[STEPS + 1] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 64,
};
static const mcud_arena arenas[] = {{arena.bytes, sizeof arena.bytes}};
static const mcud_model model = {ops, schedule, arenas, NULL, STEPS + 1, 6, 1};
const mcud_model *const mcud_deployed = &model;

void mcud_deployed_reset(void)
{
}


mcud_kernel *const mcud_kernels[] = {mcud_count, mcud_crash, mcud_deep, mcud_hang, mcud_sleep};
const uint32_t mcud_kernel_count = 5;
