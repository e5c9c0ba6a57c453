#include <stdint.h>
uint32_t cpu_hal_get_cycle_count(void);
