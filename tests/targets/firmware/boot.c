/* Answers single-letter requests over the board's UART; proves start-up, UART, timer, stack and exit. */
#include <math.h>
#include <stdint.h>

#include "line.h"
#include "mcud.h"
#include "mcud_hal.h"

static uint32_t initialised = 0x12345678u;
static uint32_t cleared[4];
static volatile float two = 2.0f;

/* 2 * rounds instructions and a constant. */
static void spin(uint32_t rounds)
{
#ifdef __riscv
    __asm__ volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
#elif defined(__arm__)
    __asm__ volatile(".syntax unified\n1: subs %0, %0, #1\n\tbne 1b" : "+l"(rounds) : : "cc");
#else
    for (volatile uint32_t left = rounds; left > 0u; left--) {
    }
#endif
}

static uint32_t ticks_of(uint32_t rounds)
{
    const uint32_t start = hal_ticks();
    spin(rounds);
    return hal_ticks() - start;
}

static uint32_t recurse(uint32_t depth)
{
    volatile uint32_t frame[64];
    frame[0] = depth;
    return depth == 0u ? 0u : frame[0] + recurse(depth - 1u) + frame[0];
}

int main(void)
{
    hal_init();
    for (;;) {
        switch (receive()) {
        case 'M': /* memory, FPU and library */
            send_word(initialised);
            send_word(cleared[0] | cleared[3]);
            send_word((uint32_t)(1000.0f * expf(two)));
            break;
        case 'C':
            send_word(hal_clock_hz());
            send_word(hal_ticks_hz());
            break;
        case 'T':
            send_word(ticks_of(receive_word()));
            break;
        case 'S': {
            uint8_t *const here = (uint8_t *)&(uint8_t){0};
            send_word((uint32_t)(hal_stack_top() - hal_stack_limit()));
            send_word((uint32_t)(hal_stack_limit() < here && here < hal_stack_top()));
            break;
        }
        case 'E': /* echo a burst: longer than the ring */
            for (uint32_t left = receive_word(); left > 0u; left--) {
                const uint8_t byte = receive();
                send(&byte, 1);
            }
            break;
        case 'H': /* read nothing for a while, so that the ring runs full */
            spin(receive_word());
            send("h", 1);
            break;
        case 'F':
            __builtin_trap();
        case 'O':
            send_word(recurse(1u << 24));
            break;
        case 'X':
            hal_exit((int32_t)receive_word());
            break;
        default:
            send("?", 1);
        }
    }
}
