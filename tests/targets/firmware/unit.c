/* Hands steps to compute unit 1, as asked over the UART by single letters; the kernels tell where they run. */
#include <stdint.h>

#include "mcud_hal.h"
#include "on_unit.h"

#define CPU_IDENTITY (*(volatile uint32_t *)0x5001F000u)

static uint32_t seen[3]; /* core, an address on its stack, rows made so far */

static void look(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const uint8_t here = 0;
    (void)op;
    seen[0] = CPU_IDENTITY;
    seen[1] = (uint32_t)(uintptr_t)&here;
    seen[2] += (uint32_t)(end_row - first_row);
}

static void trap(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    (void)end_row;
    __builtin_trap();
}

static uint32_t recurse(uint32_t depth)
{
    volatile uint32_t frame[64];
    frame[0] = depth;
    return depth == 0u ? 0u : frame[0] + recurse(depth - 1u) + frame[0];
}

static void overflow(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    seen[2] = recurse((uint32_t)end_row << 16);
}

static void hand_over(mcud_kernel *kernel)
{
    const mcud_op there = {.kernel = kernel};
    const mcud_on_unit_params params = {&there, .unit = 1u};
    const mcud_op here = {.kernel = mcud_on_unit, .params = &params};
    here.kernel(&here, 3, 5);
}

static void send(const void *bytes, uint32_t count)
{
    hal_uart_write((const uint8_t *)bytes, count);
}

static uint8_t receive(void)
{
    int32_t byte = hal_uart_read();
    while (byte < 0) {
        hal_wait();
        byte = hal_uart_read();
    }
    return (uint8_t)byte;
}

int main(void)
{
    hal_init();
    for (;;) {
        switch (receive()) {
        case 'H': /* this core */
            look(0, 0, 0);
            send(seen, sizeof seen);
            break;
        case 'L': /* the other one */
            hand_over(look);
            send(seen, sizeof seen);
            break;
        case 'N':
            for (uint32_t i = 0; i < 1000u; i++) {
                hand_over(look);
            }
            send(seen, sizeof seen);
            break;
        case 'F':
            hand_over(trap);
            break;
        case 'O':
            hand_over(overflow);
            break;
        default:
            send("?", 1);
        }
    }
}
