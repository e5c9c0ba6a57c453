/* The PLL of STM32F4 and F7, from the internal oscillator of 16 MHz, so that no board's crystal matters. */
#ifndef MCUD_PLL_F4_H
#define MCUD_PLL_F4_H

#include <stdint.h>

#include "registers.h"
#include "stm32.h"

/* RM0090: 7.3, RM0383: 6.3, RM0385: 5.3 */
#define RCC_CR 0x40023800u
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_PLLCFGR 0x40023804u
#define RCC_PLLCFGR_PLLM(n) ((n) << 0)
#define RCC_PLLCFGR_PLLN(n) ((n) << 6)
#define RCC_PLLCFGR_PLLP(n) ((n) << 16)
#define RCC_PLLCFGR_PLLSRC (1u << 22)
#define RCC_PLLCFGR_PLLQ(n) ((n) << 24)
#define RCC_CFGR 0x40023808u
#define RCC_CFGR_SW(n) ((n) << 0)
#define RCC_CFGR_SWS(n) ((n) << 2)
#define RCC_CFGR_PPRE1(n) ((n) << 10)
#define RCC_CFGR_PPRE2(n) ((n) << 13)
#define RCC_AHB1ENR 0x40023830u
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_PWREN (1u << 28)

#define HSI_HZ 16000000u
#define PLL 2u

/* The ratio of an APB bus's clock to the core's. */
#define APB_ALL 0u
#define APB_HALF 4u
#define APB_QUARTER 5u

/* 16 MHz / 8 * megahertz / 2 for the core; twice that / `usb` for USB, at most 48 MHz. 0 when the PLL does not lock. */
static inline int32_t pll_lock(uint32_t megahertz, uint32_t usb)
{
    reg_set(RCC_CR, RCC_CR_HSION);
    reg_change(RCC_PLLCFGR,
               RCC_PLLCFGR_PLLM(63u) | RCC_PLLCFGR_PLLN(511u) | RCC_PLLCFGR_PLLP(3u) | RCC_PLLCFGR_PLLSRC
                   | RCC_PLLCFGR_PLLQ(15u),
               RCC_PLLCFGR_PLLM(8u) | RCC_PLLCFGR_PLLN(megahertz) | RCC_PLLCFGR_PLLP(0u) | RCC_PLLCFGR_PLLQ(usb));
    reg_set(RCC_CR, RCC_CR_PLLON);
    return reg_wait(RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY, READY_ATTEMPTS);
}

/* Drives the core by the PLL; if the switch fails, drives all by the oscillator again and returns 0. */
static inline int32_t pll_use(uint32_t apb1, uint32_t apb2)
{
    reg_change(RCC_CFGR, RCC_CFGR_PPRE1(7u) | RCC_CFGR_PPRE2(7u), RCC_CFGR_PPRE1(apb1) | RCC_CFGR_PPRE2(apb2));
    reg_change(RCC_CFGR, RCC_CFGR_SW(3u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(3u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(3u) | RCC_CFGR_PPRE1(7u) | RCC_CFGR_PPRE2(7u), 0u);
        return 0;
    }
    return 1;
}

#endif
