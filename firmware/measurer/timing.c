#include "timing.h"

#include "mcud_cores.h"
#include "mcud_hal.h"
#include "sanitizer.h"

/* The margin protects the frame of stack_paint itself. */
enum { PAINT = 0xA5, FRAME_MARGIN = 64 };

/* Keeps the compiler from moving memory accesses across a reading of the counter. */
static uint32_t ticks_now(void)
{
    __asm__ volatile("" ::: "memory");
    const uint32_t now = hal_ticks();
    __asm__ volatile("" ::: "memory");
    return now;
}

uint32_t timing_empty(void)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t first = ticks_now();
        const uint32_t ticks = ticks_now() - first;
        least = ticks < least ? ticks : least;
    }
    return least;
}

static uint32_t less(uint32_t ticks, uint32_t empty)
{
    return ticks > empty ? ticks - empty : 0;
}

uint64_t timing_run(const mcud_model *model, uint32_t first, uint32_t end)
{
    const uint32_t empty = timing_empty();
    uint64_t total = 0;
    uint32_t last = ticks_now();
    if (model->cores != 0) {
        model->cores->run(model->cores, first, end);
        return less(ticks_now() - last, empty);
    }
    for (uint32_t step = first; step < end; step++) {
        mcud_step(model, step);
        const uint32_t now = ticks_now();
        total += less(now - last, empty);
        last = now;
    }
    return total;
}

uint32_t timing_step(const mcud_model *model, uint32_t step, uint32_t empty)
{
    const uint32_t first = ticks_now();
    mcud_step(model, step);
    return less(ticks_now() - first, empty);
}

uint64_t timing_call(const mcud_op *op, int32_t first_row, int32_t end_row, uint32_t repeat)
{
    const uint32_t empty = timing_empty();
    uint64_t total = 0;
    for (uint32_t i = 0; i < repeat; i++) {
        const uint32_t first = ticks_now();
        op->kernel(op, first_row, end_row);
        total += less(ticks_now() - first, empty);
    }
    return total;
}

static uint8_t *paint_start(void)
{
    uint8_t *const top = hal_stack_top();
    uint8_t *const limit = hal_stack_limit();
    return top - limit > MCUD_PAINT_BYTES ? top - MCUD_PAINT_BYTES : limit;
}

UNSANITIZED void stack_paint(void)
{
    const uint8_t *const end = (const uint8_t *)__builtin_frame_address(0) - FRAME_MARGIN;
    for (volatile uint8_t *at = paint_start(); at < end; at++) {
        *at = PAINT;
    }
}

UNSANITIZED uint32_t stack_measure(void)
{
    const volatile uint8_t *at = paint_start();
    while (at < hal_stack_top() && *at == PAINT) {
        at++;
    }
    return (uint32_t)(hal_stack_top() - at);
}
