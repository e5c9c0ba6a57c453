/* Memory as C expects it, by the linker script's symbols: the same for all families. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_hal.h"

extern uint32_t mcud_data_load[];
extern uint32_t mcud_data_start[];
extern uint32_t mcud_data_end[];
extern uint32_t mcud_bss_start[];
extern uint32_t mcud_bss_end[];

void memory_init(void)
{
    const uint32_t *from = mcud_data_load;
    for (uint32_t *to = mcud_data_start; to < mcud_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = mcud_bss_start; to < mcud_bss_end; to++) {
        *to = 0;
    }
}

uint8_t *hal_stack_limit(void)
{
    return mcud_stack_limit;
}

uint8_t *hal_stack_top(void)
{
    return mcud_stack_top;
}
