/* Start of the caches and of the memory protection unit of Cortex-M7. */
#include <stdint.h>

#include "cortexm_cache.h"
#include "registers.h"

/* Armv7-M Architecture Reference Manual (Arm DDI 0403E): B3.2, B3.5, B4.8 */
#define SCB_CCR 0xE000ED14u
#define SCB_CCR_DC (1u << 16)
#define SCB_CCR_IC (1u << 17)
#define SCB_CCSIDR 0xE000ED80u
#define SCB_CSSELR 0xE000ED84u
#define SCB_ICIALLU 0xE000EF50u
#define SCB_DCISW 0xE000EF60u
#define MPU_CTRL 0xE000ED94u
#define MPU_CTRL_ENABLE (1u << 0)
#define MPU_CTRL_PRIVDEFENA (1u << 2)
#define MPU_RNR 0xE000ED98u
#define MPU_RBAR 0xE000ED9Cu
#define MPU_RASR 0xE000EDA0u
#define MPU_RASR_ENABLE (1u << 0)
#define MPU_RASR_SIZE(n) ((n) << 1)
#define MPU_RASR_SRD(n) ((n) << 8)
#define MPU_RASR_B (1u << 16)
#define MPU_RASR_C (1u << 17)
#define MPU_RASR_TEX(n) ((n) << 19)
#define MPU_RASR_AP(n) ((n) << 24)
#define MPU_RASR_XN (1u << 28)

#define ALL_4_GIB 31u
#define READ_ONLY 6u
#define READ_AND_WRITE 3u
#define ALL_BUT_EXTERNAL 0x87u /* bits of eighths of the address space: 0, 1, 2 and 7 keep their default */

static inline void barrier(void)
{
    __asm volatile("dsb\n\tisb" ::: "memory");
}

/* Sets a region; where regions overlap, the one with the highest number applies. */
static void set_region(uint32_t number, uintptr_t origin, uint32_t attributes)
{
    reg_write(MPU_RNR, number);
    reg_write(MPU_RBAR, (uint32_t)origin);
    reg_write(MPU_RASR, attributes | MPU_RASR_ENABLE);
}

void external_memory_off(void)
{
    /* Strongly ordered, no access, no execution. */
    set_region(0u, 0u,
               MPU_RASR_XN | MPU_RASR_TEX(0u) | MPU_RASR_SRD(ALL_BUT_EXTERNAL) | MPU_RASR_SIZE(ALL_4_GIB));
    reg_write(MPU_CTRL, MPU_CTRL_PRIVDEFENA | MPU_CTRL_ENABLE);
    barrier();
}

void external_memory_only(uintptr_t origin, uint32_t log2_bytes)
{
    set_region(1u, origin,
               MPU_RASR_AP(READ_ONLY) | MPU_RASR_TEX(1u) | MPU_RASR_C | MPU_RASR_B | MPU_RASR_SIZE(log2_bytes - 1u));
    external_memory_off();
}

void external_memory_use(uintptr_t origin, uint32_t log2_bytes, external_access access)
{
    /* Normal memory, write-back and write-allocate; or strongly ordered. */
    const uint32_t cached = MPU_RASR_TEX(1u) | MPU_RASR_C | MPU_RASR_B;
    const uint32_t open = MPU_RASR_AP(READ_AND_WRITE) | MPU_RASR_XN | MPU_RASR_SIZE(log2_bytes - 1u);
    barrier();
    if (access == EXTERNAL_CLOSED) {
        reg_write(MPU_RNR, 2u);
        reg_write(MPU_RASR, 0u);
    } else {
        set_region(2u, origin, open | (access == EXTERNAL_CACHED ? cached : 0u));
    }
    barrier();
}

void caches_on(void)
{
    barrier();
    reg_write(SCB_ICIALLU, 0u);
    reg_write(SCB_CSSELR, 0u); /* the data cache of level 1 */
    barrier();
    const uint32_t geometry = reg_read(SCB_CCSIDR);
    const uint32_t sets = (geometry >> 13) & 0x7FFFu; /* the number less one; `ways` too */
    const uint32_t ways = (geometry >> 3) & 0x3FFu;
    for (uint32_t set = 0; set <= sets; set++) {
        for (uint32_t way = 0; way <= ways; way++) {
            reg_write(SCB_DCISW, (way << 30) | (set << 5)); /* four ways, lines of 32 bytes */
        }
    }
    barrier();
    reg_set(SCB_CCR, SCB_CCR_IC | SCB_CCR_DC);
    barrier();
}
