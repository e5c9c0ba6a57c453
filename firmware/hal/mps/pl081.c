/* Transfers by the PL081 controllers of the MPS2 boards: channel 0 of each is an engine (mcud_dma.h).
 *
 * A descriptor has 4,095 elements at most, words where source and target allow it. A transfer is done piece by piece:
 * the interrupt at the end of a piece begins the next piece, or the next transfer of the queue. Between two pieces the
 * controller idles until the interrupt has run. While the interrupt is masked, the next start or wait does its work.
 *
 * The controllers are masters of the secure world as they come out of reset, and see the secure addresses that the
 * program uses. The emulator completes a transfer while the register is written; on a board transfers take time, and
 * the queue fills. There is no data cache between core and memories, so barriers suffice.
 */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_dma.h"
#include "mcud_hal.h"
#include "registers.h"

#define DMA_CLEAR_COUNT 0x008u
#define DMA_ERROR 0x018u
#define DMA_ENABLED 0x01Cu
#define DMA_CONFIG 0x030u
#define CHANNEL_FROM 0x100u
#define CHANNEL_TO 0x104u
#define CHANNEL_NEXT 0x108u
#define CHANNEL_CONTROL 0x10Cu
#define CHANNEL_CONFIG 0x110u

#define CHANNEL_0 1u
#define CONFIG_ENABLE 1u
#define CONTROL_WORDS (2u << 18 | 2u << 21)  /* widths of source and target; 0 for bytes */
#define CONTROL_BURST (1u << 12 | 1u << 15)  /* four elements at a time */
#define CONTROL_UPWARDS (1u << 26 | 1u << 27)
#define CONTROL_PRIVILEGED (1u << 28)
#define CONTROL_INTERRUPT (1u << 31)
#define CHANNEL_ENABLE 1u                    /* from memory to memory */
#define CHANNEL_INTERRUPTS (1u << 14 | 1u << 15)

#define NVIC_ISER 0xE000E100u
#define NVIC_ICER 0xE000E180u

enum { QUEUE = 8, MOST_ELEMENTS = 4095, WORD = 4 };

typedef struct {
    uint32_t to;
    uint32_t from;
    uint32_t left; /* bytes */
} transfer;

typedef struct {
    transfer queue[QUEUE]; /* a ring; the oldest unfinished one is at `oldest` */
    uint32_t oldest;
    uint32_t unfinished;
    uint32_t piece; /* bytes of the oldest transfer that the controller copies now */
} engine_state;

static const uint32_t bases[MCUD_DMA_ENGINES] = {MCUD_DMA_BASES};
static const uint8_t irqs[MCUD_DMA_ENGINES] = {MCUD_DMA_IRQS};
static engine_state engines[MCUD_DMA_ENGINES];

/* Masks the engine's own interrupt alone. */
static void lock(uint32_t engine)
{
    reg_write(NVIC_ICER + 4u * (irqs[engine] / 32u), 1u << (irqs[engine] % 32u));
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

static void unlock(uint32_t engine)
{
    __asm__ volatile("dsb" ::: "memory");
    reg_write(NVIC_ISER + 4u * (irqs[engine] / 32u), 1u << (irqs[engine] % 32u));
}

/* Starts the next piece: bytes until both addresses are at words, or as much as one descriptor has room for. */
static void begin_piece(engine_state *state, uint32_t base)
{
    const transfer *one = &state->queue[state->oldest];
    const uint32_t beyond = one->to % WORD;
    const uint32_t alike = beyond == one->from % WORD;
    const uint32_t words = alike && beyond == 0u && one->left >= WORD;
    uint32_t elements = words ? one->left / WORD : one->left;
    if (alike && beyond != 0u && elements > WORD - beyond) {
        elements = WORD - beyond;
    }
    elements = elements < MOST_ELEMENTS ? elements : MOST_ELEMENTS;
    state->piece = words ? elements * WORD : elements;
    reg_write(base + CHANNEL_FROM, one->from);
    reg_write(base + CHANNEL_TO, one->to);
    reg_write(base + CHANNEL_NEXT, 0u);
    reg_write(base + CHANNEL_CONTROL, elements | (words ? CONTROL_WORDS : 0u) | CONTROL_BURST | CONTROL_UPWARDS |
                                          CONTROL_PRIVILEGED | CONTROL_INTERRUPT);
    __asm__ volatile("dsb" ::: "memory"); /* the core's writes reach memory first */
    reg_write(base + CHANNEL_CONFIG, CHANNEL_ENABLE | CHANNEL_INTERRUPTS);
}

static void end_piece(engine_state *state, uint32_t base)
{
    if (reg_read(base + DMA_ERROR) & CHANNEL_0) {
        report_text("dma: bus error\n");
        hal_exit(EXIT_FAULT);
    }
    reg_write(base + DMA_CLEAR_COUNT, CHANNEL_0);
    transfer *one = &state->queue[state->oldest];
    one->to += state->piece;
    one->from += state->piece;
    one->left -= state->piece;
    state->piece = 0;
}

/* Starts the next piece if the controller has finished one. Called in the engine's interrupt, or while it is masked. */
static void advance(uint32_t engine)
{
    engine_state *state = &engines[engine];
    const uint32_t base = bases[engine];
    if (state->piece != 0u) {
        if (reg_read(base + DMA_ENABLED) & CHANNEL_0) {
            return;
        }
        end_piece(state, base);
    }
    while (state->unfinished > 0u && state->queue[state->oldest].left == 0u) {
        state->oldest = (state->oldest + 1u) % QUEUE;
        state->unfinished--;
    }
    if (state->unfinished > 0u) {
        begin_piece(state, base);
    }
}

void dma_interrupt(void)
{
    for (uint32_t engine = 0; engine < MCUD_DMA_ENGINES; engine++) {
        advance(engine);
    }
    __asm__ volatile("dsb" ::: "memory"); /* waits until the controller has withdrawn its request */
}

void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes)
{
    engine_state *state = &engines[engine];
    reg_write(bases[engine] + DMA_CONFIG, CONFIG_ENABLE);
    lock(engine);
    while (state->unfinished == QUEUE) {
        advance(engine);
    }
    state->queue[(state->oldest + state->unfinished) % QUEUE] =
        (transfer){(uint32_t)(uintptr_t)to, (uint32_t)(uintptr_t)from, size_bytes};
    state->unfinished++;
    advance(engine);
    unlock(engine);
}

void mcud_dma_wait(uint32_t engine, uint32_t pending)
{
    for (uint32_t unfinished = UINT32_MAX; unfinished > pending;) {
        lock(engine);
        advance(engine);
        unfinished = engines[engine].unfinished;
        unlock(engine);
    }
}
