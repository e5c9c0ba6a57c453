/* TIM2 as a free-running 32-bit counter: the emulated STM32F4's exact instruction counter. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define RCC_APB1ENR 0x40023840u
#define TIM_CR1 (MCUD_TIMER_BASE + 0x00u)
#define TIM_EGR (MCUD_TIMER_BASE + 0x14u)
#define TIM_CNT (MCUD_TIMER_BASE + 0x24u)
#define TIM_PSC (MCUD_TIMER_BASE + 0x28u)
#define TIM_ARR (MCUD_TIMER_BASE + 0x2Cu)

void timer_init(void)
{
    reg_set(RCC_APB1ENR, 1u);
    reg_write(TIM_ARR, 0xFFFFFFFFu);
    reg_write(TIM_PSC, 0);
    reg_write(TIM_EGR, 1u); /* load both */
    reg_write(TIM_CR1, 1u);
}

uint32_t hal_ticks(void)
{
    return reg_read(TIM_CNT);
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
