/* SDRAM at the FMC of STM32F7 and H7: geometry and times are facts of the board file, in ns as in the memory's data sheet. */
#include "fmc_sdram.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"
#include "stm32.h"

/* RM0385: 13.7.5, RM0433: Flexible memory controller, SDRAM controller registers */
#define FMC_SDCR1 0x140u
#define FMC_SDCR1_NC(n) ((n) << 0)
#define FMC_SDCR1_NR(n) ((n) << 2)
#define FMC_SDCR1_MWID(n) ((n) << 4)
#define FMC_SDCR1_NB (1u << 6)
#define FMC_SDCR1_CAS(n) ((n) << 7)
#define FMC_SDCR1_WP (1u << 9)
#define FMC_SDCR1_SDCLK(n) ((n) << 10)
#define FMC_SDCR1_RBURST (1u << 12)
#define FMC_SDCR1_RPIPE(n) ((n) << 13)
#define FMC_SDCR2 0x144u
#define FMC_SDTR1 0x148u
#define FMC_SDTR1_TMRD(n) ((n) << 0)
#define FMC_SDTR1_TXSR(n) ((n) << 4)
#define FMC_SDTR1_TRAS(n) ((n) << 8)
#define FMC_SDTR1_TRC(n) ((n) << 12)
#define FMC_SDTR1_TWR(n) ((n) << 16)
#define FMC_SDTR1_TRP(n) ((n) << 20)
#define FMC_SDTR1_TRCD(n) ((n) << 24)
#define FMC_SDTR2 0x14Cu
#define FMC_SDCMR 0x150u
#define FMC_SDCMR_MODE(n) ((n) << 0)
#define FMC_SDCMR_CTB2 (1u << 3)
#define FMC_SDCMR_CTB1 (1u << 4)
#define FMC_SDCMR_NRFS(n) ((n) << 5)
#define FMC_SDCMR_MRD(n) ((n) << 9)
#define FMC_SDRTR 0x154u
#define FMC_SDRTR_COUNT(n) ((n) << 1)

/* RM0385: 13.7.3, the commands of the initialisation */
#define CLOCK_ENABLE 1u
#define PRECHARGE_ALL 2u
#define AUTO_REFRESH 3u
#define LOAD_MODE 4u
#define REFRESHES 8u

/* The mode register of an SDRAM (JEDEC 21-C): bursts of one word, which the FMC needs. */
#define MODE_CAS(n) ((n) << 4)
#define MODE_SINGLE_WRITES (1u << 9)

#define FMC_FUNCTION 12u
#define MODE_CLOCKS 2u            /* tMRD of all SDRAMs */
#define LEAST_RECOVERY_CLOCKS 2u  /* tWR: a clock and 6 ns, up to 166 MHz */
#define REFRESH_MARGIN_CLOCKS 20u /* RM0385: FMC_SDRTR, for a request that comes during a read */
#define LEAST_REFRESH_CLOCKS 41u  /* RM0385: FMC_SDRTR; fewer only if the PLL has failed */
#define SECOND_BANK 0xD0000000u

static const uintptr_t control = MCUD_SDRAM_ORIGIN == SECOND_BANK ? FMC_SDCR2 : FMC_SDCR1;
static const uintptr_t times = MCUD_SDRAM_ORIGIN == SECOND_BANK ? FMC_SDTR2 : FMC_SDTR1;
static const uint32_t target = MCUD_SDRAM_ORIGIN == SECOND_BANK ? FMC_SDCMR_CTB2 : FMC_SDCMR_CTB1;

static const uint8_t pins[] = {MCUD_SDRAM_PINS};

void fmc_sdram_pins(uintptr_t enable_register, uint32_t enable_a, uintptr_t port_a)
{
    for (uint32_t i = 0; i < sizeof pins; i++) {
        peripheral_pin(enable_register, enable_a, port_a, pins[i], (pin_use){FMC_FUNCTION, VERY_HIGH_SPEED});
    }
}

/* The number of clocks of the memory that take at least `ns`. */
static uint32_t clocks(uint32_t ns, uint32_t khz)
{
    return (ns * khz + 999999u) / 1000000u;
}

static uint32_t memory_khz(uint32_t fmc_hz)
{
    return fmc_hz / MCUD_SDRAM_CLOCK_DIVIDER / 1000u;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void fmc_sdram_configure(uintptr_t fmc, uint32_t fmc_hz)
{
    /* Settings that both banks share are in the registers of the first bank. */
    reg_change(fmc + FMC_SDCR1, FMC_SDCR1_SDCLK(3u) | FMC_SDCR1_RBURST | FMC_SDCR1_RPIPE(3u),
               FMC_SDCR1_SDCLK(MCUD_SDRAM_CLOCK_DIVIDER) | FMC_SDCR1_RBURST | FMC_SDCR1_RPIPE(MCUD_SDRAM_READ_PIPE));
    reg_change(fmc + control,
               FMC_SDCR1_NC(3u) | FMC_SDCR1_NR(3u) | FMC_SDCR1_MWID(3u) | FMC_SDCR1_NB | FMC_SDCR1_CAS(3u) | FMC_SDCR1_WP,
               FMC_SDCR1_NC(MCUD_SDRAM_COLUMN_BITS - 8u) | FMC_SDCR1_NR(MCUD_SDRAM_ROW_BITS - 11u)
                   | FMC_SDCR1_MWID(MCUD_SDRAM_WIDTH / 16u) | FMC_SDCR1_NB | FMC_SDCR1_CAS(MCUD_SDRAM_CAS_LATENCY));
    const uint32_t khz = memory_khz(fmc_hz);
    const uint32_t active = clocks(MCUD_SDRAM_RAS_NS, khz);
    const uint32_t cycle = clocks(MCUD_SDRAM_RC_NS, khz);
    const uint32_t precharge = clocks(MCUD_SDRAM_RP_NS, khz);
    const uint32_t column = clocks(MCUD_SDRAM_RCD_NS, khz);
    /* RM0385, FMC_SDTR: no shorter than tRAS - tRCD, nor than tRC - tRCD - tRP. */
    uint32_t recovery = larger(LEAST_RECOVERY_CLOCKS, larger(active, column) - column);
    recovery = larger(recovery, larger(cycle, column + precharge) - column - precharge);
    reg_change(fmc + FMC_SDTR1, FMC_SDTR1_TRC(15u) | FMC_SDTR1_TRP(15u),
               FMC_SDTR1_TRC(cycle - 1u) | FMC_SDTR1_TRP(precharge - 1u));
    reg_change(fmc + times,
               FMC_SDTR1_TMRD(15u) | FMC_SDTR1_TXSR(15u) | FMC_SDTR1_TRAS(15u) | FMC_SDTR1_TWR(15u) | FMC_SDTR1_TRCD(15u),
               FMC_SDTR1_TMRD(MODE_CLOCKS - 1u) | FMC_SDTR1_TXSR(clocks(MCUD_SDRAM_XSR_NS, khz) - 1u)
                   | FMC_SDTR1_TRAS(active - 1u) | FMC_SDTR1_TWR(recovery - 1u) | FMC_SDTR1_TRCD(column - 1u));
}

/* The pause after each command is that of the first, which takes longest. */
static void command(uintptr_t fmc, uint32_t mode, uint32_t details)
{
    reg_write(fmc + FMC_SDCMR, FMC_SDCMR_MODE(mode) | target | details);
    pause_us(MCUD_SDRAM_POWER_UP_US);
}

void fmc_sdram_power_up(uintptr_t fmc, uint32_t fmc_hz)
{
    command(fmc, CLOCK_ENABLE, 0u);
    command(fmc, PRECHARGE_ALL, 0u);
    command(fmc, AUTO_REFRESH, FMC_SDCMR_NRFS(REFRESHES - 1u));
    command(fmc, LOAD_MODE, FMC_SDCMR_MRD(MODE_SINGLE_WRITES | MODE_CAS(MCUD_SDRAM_CAS_LATENCY)));
    const uint32_t refresh = MCUD_SDRAM_REFRESH_NS * memory_khz(fmc_hz) / 1000000u;
    const uint32_t most = larger(refresh, LEAST_REFRESH_CLOCKS + REFRESH_MARGIN_CLOCKS);
    reg_change(fmc + FMC_SDRTR, FMC_SDRTR_COUNT(8191u), FMC_SDRTR_COUNT(most - REFRESH_MARGIN_CLOCKS));
}
