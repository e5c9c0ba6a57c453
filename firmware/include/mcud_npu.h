/* An Ethos-U beside the core: it runs a register command stream over regions of memory.
 *
 * firmware/hal/ethos_u/ethos_u_driver.c runs it on a unit of the chip, ethos_u_driver_core.c by Arm's driver, where an
 * SDK or Zephyr has it. The other files there are a functional model of the Ethos-U55, and of the parts that the
 * Ethos-U65 shares with it, for builds without a unit: it computes the same bytes, one operation after another, so it
 * cannot see a missing wait.
 */
#ifndef MCUD_NPU_H
#define MCUD_NPU_H

#include <stdbool.h>
#include <stdint.h>

enum { MCUD_NPU_REGIONS = 8, MCUD_NPU_ALIGNMENT = 16, MCUD_NPU_PAYLOAD_WORDS = 4 };

enum {
    MCUD_NPU_DONE = 0,
    MCUD_NPU_BAD_COMMAND = 1, /* an unknown command, a value that no register takes, or no NPU_STOP */
    MCUD_NPU_UNSUPPORTED = 2, /* the model does not know the result of a unit there */
    MCUD_NPU_OUTSIDE = 3,     /* an address outside its region, or a write to a region that is not writable */
    MCUD_NPU_BAD_WEIGHTS = 4, /* a weight stream that ends early, or that no encoder writes */
    MCUD_NPU_OVERFLOW = 5,    /* a sum that the accumulator cannot hold */
    MCUD_NPU_TIMEOUT = 6,     /* the unit has not finished */
    MCUD_NPU_FAULT = 7,       /* the unit reports a bus error, or a command that it does not know */
    MCUD_NPU_NO_UNIT = 8,     /* no unit of this kind answers, or its reset does not end */
    MCUD_NPU_UNALIGNED = 9,   /* the words or a region do not begin at a multiple of 16 bytes */
    MCUD_NPU_TOO_LONG = 10    /* more words than ethos_u_driver_core.c has room for */
};

/* Region 0 has constants, which may be in flash; the other regions are in RAM. */
typedef struct {
    const uint8_t *base[MCUD_NPU_REGIONS];
    uint32_t size_bytes[MCUD_NPU_REGIONS]; /* the model refuses addresses beyond it; 0: there is no such region */
    uint8_t writable;                      /* bit k: commands may write to region k */
    uint8_t has_payload; /* 1: four words for ethos_u_driver_core.c precede the words, which are in flash */
} mcud_npu_regions;

static inline bool mcud_npu_aligned(const uint32_t *words, const mcud_npu_regions *regions)
{
    uintptr_t addresses = (uintptr_t)words;
    for (uint32_t region = 0; region < MCUD_NPU_REGIONS; region++) {
        addresses |= (uintptr_t)regions->base[region];
    }
    return addresses % MCUD_NPU_ALIGNMENT == 0u;
}

/* Runs `count` words up to NPU_STOP, and waits for the end; 0, or a code above. */
int32_t mcud_npu_run(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions);

/* A kernel calls this with the code of a run that failed; the results of the kernel are undefined. The kernels have a
 * weak version, which ends the program by a trap. */
void mcud_npu_failed(int32_t code);

#endif
