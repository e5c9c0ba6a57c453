/* Two cores run the lanes of schedule.h, as asked over the UART; the kernel runs a known loop. */
#include "line.h"
#include "mcud_cores.h"
#include "schedule.h"

/* 2 * op->rows * (end_row - first_row) instructions and a constant. */
static void spin(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    uint32_t rounds = op->rows * (uint32_t)(end_row - first_row);
#ifdef __riscv
    __asm__ volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
#else
    __asm__ volatile(".syntax unified\n1: subs %0, %0, #1\n\tbne 1b" : "+l"(rounds) : : "cc");
#endif
}

static const mcud_op ops[] = {OPS};
static const mcud_part first_lane[] = {LANE_0};
static const mcud_part second_lane[] = {LANE_1};
static const mcud_lane lanes[] = {{first_lane, sizeof first_lane / sizeof first_lane[0]},
                                  {second_lane, sizeof second_lane / sizeof second_lane[0]}};
static mcud_core_state state[2];
static const mcud_cores program = {mcud_run_cores, ops, lanes, state, 2};

int main(void)
{
    hal_init();
    for (;;) {
        if (receive() != 'R') {
            send("?", 1);
            continue;
        }
        const uint32_t first = receive_word();
        const uint32_t end = receive_word();
        const uint32_t before = hal_ticks();
        program.run(&program, first, end);
        send_word(hal_ticks() - before);
    }
}
