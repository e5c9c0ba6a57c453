/* PSRAM with the commands of an APS6404L on the pads below a Teensy 4.1: the i.MX RT1062's FlexSPI2, port A. */
#include "flexspi2_psram.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

/* IMXRT1060RM: Clock Controller Module */
#define CCM_CBCMR 0x400FC018u
#define CCM_CBCMR_FLEXSPI2_CLK_SEL(n) ((n) << 8)
#define CCM_CBCMR_FLEXSPI2_PODF(n) ((n) << 29)
#define CCM_CCGR7 0x400FC084u
#define CCM_CCGR7_CG1(n) ((n) << 2)
#define CCM_ANALOG_PLL_SYS 0x400D8030u
#define CCM_ANALOG_PLL_SYS_DIV_SELECT (1u << 0)
#define CCM_ANALOG_PLL_SYS_ENABLE (1u << 13)
#define CCM_ANALOG_PLL_SYS_LOCK (1u << 31)

/* IMXRT1060RM: IOMUX Controller */
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22 0x401F806Cu
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_23 0x401F8070u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_24 0x401F8074u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_25 0x401F8078u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_26 0x401F807Cu
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_27 0x401F8080u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_28 0x401F8084u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_29 0x401F8088u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22_MUX_MODE(n) ((n) << 0)
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22_SION (1u << 4)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22 0x401F825Cu
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_23 0x401F8260u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_24 0x401F8264u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_25 0x401F8268u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_26 0x401F826Cu
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_27 0x401F8270u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_28 0x401F8274u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_29 0x401F8278u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_SRE (1u << 0)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_DSE(n) ((n) << 3)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_SPEED(n) ((n) << 6)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PKE (1u << 12)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PUE (1u << 13)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PUS(n) ((n) << 14)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_HYS (1u << 16)
#define IOMUXC_FLEXSPI2_IPP_IND_DQS_FA_SELECT_INPUT 0x401F872Cu
#define IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT0_SELECT_INPUT 0x401F8730u
#define IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT1_SELECT_INPUT 0x401F8734u
#define IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT2_SELECT_INPUT 0x401F8738u
#define IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT3_SELECT_INPUT 0x401F873Cu
#define IOMUXC_FLEXSPI2_IPP_IND_SCK_FA_SELECT_INPUT 0x401F8750u
#define IOMUXC_FLEXSPI2_IPP_IND_DQS_FA_SELECT_INPUT_DAISY(n) ((n) << 0)

/* IMXRT1060RM: FlexSPI Controller */
#define FLEXSPI2_MCR0 0x402A4000u
#define FLEXSPI2_MCR0_SWRESET (1u << 0)
#define FLEXSPI2_MCR0_MDIS (1u << 1)
#define FLEXSPI2_MCR0_RXCLKSRC(n) ((n) << 4)
#define FLEXSPI2_AHBCR 0x402A400Cu
#define FLEXSPI2_AHBCR_CACHABLEEN (1u << 3)
#define FLEXSPI2_AHBCR_BUFFERABLEEN (1u << 4)
#define FLEXSPI2_AHBCR_PREFETCHEN (1u << 5)
#define FLEXSPI2_AHBCR_READADDROPT (1u << 6)
#define FLEXSPI2_INTR 0x402A4014u
#define FLEXSPI2_INTR_IPCMDDONE (1u << 0)
#define FLEXSPI2_INTR_IPRXWA (1u << 5)
#define FLEXSPI2_LUTKEY 0x402A4018u
#define FLEXSPI2_LUTCR 0x402A401Cu
#define FLEXSPI2_LUTCR_UNLOCK (1u << 1)
#define FLEXSPI2_FLSHA1CR0 0x402A4060u
#define FLEXSPI2_FLSHCR1A1 0x402A4070u
#define FLEXSPI2_FLSHCR1A1_TCSS(n) ((n) << 0)
#define FLEXSPI2_FLSHCR1A1_TCSH(n) ((n) << 5)
#define FLEXSPI2_FLSHCR1A1_CSINTERVAL(n) ((n) << 16)
#define FLEXSPI2_FLSHCR2A1 0x402A4080u
#define FLEXSPI2_FLSHCR2A1_ARDSEQID(n) ((n) << 0)
#define FLEXSPI2_FLSHCR2A1_AWRSEQID(n) ((n) << 8)
#define FLEXSPI2_IPCR0 0x402A40A0u
#define FLEXSPI2_IPCR1 0x402A40A4u
#define FLEXSPI2_IPCR1_IDATSZ(n) ((n) << 0)
#define FLEXSPI2_IPCR1_ISEQID(n) ((n) << 16)
#define FLEXSPI2_IPCMD 0x402A40B0u
#define FLEXSPI2_IPCMD_TRG (1u << 0)
#define FLEXSPI2_IPRXFCR 0x402A40B8u
#define FLEXSPI2_IPRXFCR_CLRIPRXF (1u << 0)
#define FLEXSPI2_RFDR0 0x402A4100u
#define FLEXSPI2_LUT0 0x402A4200u

/* IMXRT1060RM: FlexSPI Controller, look-up table. A step: operation, log2 of its pads, operand; two steps a word. */
#define STEP(operation, pads, operand) ((operation) << 10 | (pads) << 8 | (operand))
#define THEN(step) ((step) << 16)
#define COMMAND 1u
#define ADDRESS 2u
#define WRITE 8u
#define READ 9u
#define SILENCE 12u
#define ONE_PAD 0u
#define QUAD 2u
#define KEY 0x5AF05AF0u
#define WORDS_OF_A_SEQUENCE 4u

#define PLL_HZ 528000000u
#define MOST_DIVIDER 8u
#define FROM_PLL 3u
#define CLOCK_ALWAYS 3u
#define READY_ATTEMPTS 100000u
#define FLEXSPI2_PORT_A 8u
#define STROBE_LOOPED_BACK 1u
#define SELECT_CLOCKS 3u /* before the first and after the last clock */
#define ID_BYTES 4u
#define ID 0x5D0Du /* maker, and the mark of a good die */
#define ID_BITS 0xFFFFu

#if MOST_DIVIDER * MCUD_PSRAM_MOST_HZ < PLL_HZ
#error "most_hz of the board's psram is less than the least clock of FlexSPI2, 66 MHz"
#endif

#define DRIVEN \
    (IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_SRE | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_DSE(7u) \
     | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_SPEED(3u) | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_HYS)
#define KEPT (DRIVEN | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PKE)
#define PULLED (KEPT | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PUE)
#define DATA (PULLED | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PUS(1u))      /* 47 kohm */
#define PULLED_UP (PULLED | IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22_PUS(2u)) /* 100 kohm */

static const struct {
    uintptr_t function;
    uintptr_t pad;
    uint32_t settings;
} pins[] = {
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_22, PULLED_UP}, /* second chip select */
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_23, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_23, KEPT}, /* strobe, looped back */
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_24, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_24, PULLED_UP}, /* chip select */
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_25, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_25, DRIVEN}, /* clock */
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_26, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_26, DATA}, /* data 0 to 3 */
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_27, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_27, DATA},
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_28, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_28, DATA},
    {IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_29, IOMUXC_SW_PAD_CTL_PAD_GPIO_EMC_29, DATA},
};

static const uintptr_t inputs[] = {
    IOMUXC_FLEXSPI2_IPP_IND_DQS_FA_SELECT_INPUT,
    IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT0_SELECT_INPUT,
    IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT1_SELECT_INPUT,
    IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT2_SELECT_INPUT,
    IOMUXC_FLEXSPI2_IPP_IND_IO_FA_BIT3_SELECT_INPUT,
    IOMUXC_FLEXSPI2_IPP_IND_SCK_FA_SELECT_INPUT,
};

enum sequence { LEAVE_QUAD, RESET_ENABLE, RESET, READ_ID, ENTER_QUAD, QUAD_READ, QUAD_WRITE, SEQUENCES };

/* APS6404L-3SQR, data sheet: 8, commands */
static const uint32_t sequences[SEQUENCES][2] = {
    [LEAVE_QUAD] = {STEP(COMMAND, QUAD, 0xF5u)},
    [RESET_ENABLE] = {STEP(COMMAND, ONE_PAD, 0x66u)},
    [RESET] = {STEP(COMMAND, ONE_PAD, 0x99u)},
    [READ_ID] = {STEP(COMMAND, ONE_PAD, 0x9Fu) | THEN(STEP(SILENCE, ONE_PAD, 24u)), STEP(READ, ONE_PAD, ID_BYTES)},
    [ENTER_QUAD] = {STEP(COMMAND, ONE_PAD, 0x35u)},
    [QUAD_READ] = {STEP(COMMAND, QUAD, 0xEBu) | THEN(STEP(ADDRESS, QUAD, 24u)),
                   STEP(SILENCE, QUAD, 6u) | THEN(STEP(READ, QUAD, ID_BYTES))},
    [QUAD_WRITE] = {STEP(COMMAND, QUAD, 0x38u) | THEN(STEP(ADDRESS, QUAD, 24u)), STEP(WRITE, QUAD, ID_BYTES)},
};

static void use_pins(void)
{
    for (uint32_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        reg_write(pins[i].pad, pins[i].settings);
        reg_write(pins[i].function, IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22_MUX_MODE(FLEXSPI2_PORT_A)
                                        | IOMUXC_SW_MUX_CTL_PAD_GPIO_EMC_22_SION);
    }
    for (uint32_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        reg_write(inputs[i], IOMUXC_FLEXSPI2_IPP_IND_DQS_FA_SELECT_INPUT_DAISY(1u));
    }
}

/* Starts the PLL if the boot ROM has not, and sets the clock. 0 if the PLL does not lock. */
static int32_t start_clock(void)
{
    if ((reg_read(CCM_ANALOG_PLL_SYS) & CCM_ANALOG_PLL_SYS_LOCK) == 0u) {
        reg_write(CCM_ANALOG_PLL_SYS, CCM_ANALOG_PLL_SYS_ENABLE | CCM_ANALOG_PLL_SYS_DIV_SELECT);
        if (!reg_wait(CCM_ANALOG_PLL_SYS, CCM_ANALOG_PLL_SYS_LOCK, CCM_ANALOG_PLL_SYS_LOCK, READY_ATTEMPTS)) {
            return 0;
        }
    }
    const uint32_t divider = (PLL_HZ + MCUD_PSRAM_MOST_HZ - 1u) / MCUD_PSRAM_MOST_HZ;
    reg_change(CCM_CCGR7, CCM_CCGR7_CG1(3u), 0u);
    reg_change(CCM_CBCMR, CCM_CBCMR_FLEXSPI2_CLK_SEL(3u) | CCM_CBCMR_FLEXSPI2_PODF(7u),
               CCM_CBCMR_FLEXSPI2_CLK_SEL(FROM_PLL) | CCM_CBCMR_FLEXSPI2_PODF(divider - 1u));
    reg_set(CCM_CCGR7, CCM_CCGR7_CG1(CLOCK_ALWAYS));
    return 1;
}

/* Configures FlexSPI2 without read-ahead, so that no access is longer than a cache line, or leaves a page of the
 * memory. */
static int32_t configure(void)
{
    const uint32_t pause = (MCUD_PSRAM_DESELECT_NS * (MCUD_PSRAM_MOST_HZ / 1000u) + 999999u) / 1000000u;
    reg_set(FLEXSPI2_MCR0, FLEXSPI2_MCR0_MDIS);
    reg_change(FLEXSPI2_MCR0, FLEXSPI2_MCR0_RXCLKSRC(3u), FLEXSPI2_MCR0_RXCLKSRC(STROBE_LOOPED_BACK));
    reg_change(FLEXSPI2_AHBCR,
               FLEXSPI2_AHBCR_CACHABLEEN | FLEXSPI2_AHBCR_BUFFERABLEEN | FLEXSPI2_AHBCR_PREFETCHEN
                   | FLEXSPI2_AHBCR_READADDROPT,
               0u);
    reg_write(FLEXSPI2_FLSHA1CR0, 1u << (MCUD_PSRAM_LOG2_BYTES - 10u)); /* in KiB */
    reg_write(FLEXSPI2_FLSHCR1A1, FLEXSPI2_FLSHCR1A1_TCSS(SELECT_CLOCKS) | FLEXSPI2_FLSHCR1A1_TCSH(SELECT_CLOCKS)
                                      | FLEXSPI2_FLSHCR1A1_CSINTERVAL(pause));
    reg_write(FLEXSPI2_FLSHCR2A1, FLEXSPI2_FLSHCR2A1_ARDSEQID(QUAD_READ) | FLEXSPI2_FLSHCR2A1_AWRSEQID(QUAD_WRITE));
    reg_change(FLEXSPI2_MCR0, FLEXSPI2_MCR0_MDIS, 0u);
    reg_set(FLEXSPI2_MCR0, FLEXSPI2_MCR0_SWRESET);
    if (!reg_wait(FLEXSPI2_MCR0, FLEXSPI2_MCR0_SWRESET, 0u, READY_ATTEMPTS)) {
        return 0;
    }
    reg_write(FLEXSPI2_LUTKEY, KEY);
    reg_write(FLEXSPI2_LUTCR, FLEXSPI2_LUTCR_UNLOCK);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        for (uint32_t word = 0; word < WORDS_OF_A_SEQUENCE; word++) {
            reg_write(FLEXSPI2_LUT0 + 4u * (WORDS_OF_A_SEQUENCE * i + word), word < 2u ? sequences[i][word] : 0u);
        }
    }
    return 1;
}

static int32_t run(enum sequence sequence, uint32_t bytes)
{
    reg_write(FLEXSPI2_INTR, FLEXSPI2_INTR_IPCMDDONE);
    reg_write(FLEXSPI2_IPRXFCR, FLEXSPI2_IPRXFCR_CLRIPRXF);
    reg_write(FLEXSPI2_IPCR0, 0u);
    reg_write(FLEXSPI2_IPCR1, FLEXSPI2_IPCR1_ISEQID((uint32_t)sequence) | FLEXSPI2_IPCR1_IDATSZ(bytes));
    reg_write(FLEXSPI2_IPCMD, FLEXSPI2_IPCMD_TRG);
    return reg_wait(FLEXSPI2_INTR, FLEXSPI2_INTR_IPCMDDONE, FLEXSPI2_INTR_IPCMDDONE, READY_ATTEMPTS);
}

int32_t flexspi2_psram_start(void)
{
    use_pins();
    if (!start_clock() || !configure() || !run(LEAVE_QUAD, 0u) || !run(RESET_ENABLE, 0u) || !run(RESET, 0u)
        || !run(READ_ID, ID_BYTES)) {
        return 0;
    }
    const uint32_t id = reg_read(FLEXSPI2_RFDR0) & ID_BITS;
    reg_write(FLEXSPI2_INTR, FLEXSPI2_INTR_IPRXWA); /* acknowledges that the word has been read */
    return id == ID && run(ENTER_QUAD, 0u);
}
