/* Core cycles of the ESP32 family by ESP-IDF, the base of its Arduino core. */
#include <stdint.h>

#include "esp_idf_version.h"
#include "hal_parts.h"
#include "mcud_hal.h"

#if ESP_IDF_VERSION >= ESP_IDF_VERSION_VAL(5, 0, 0)
#include "esp_cpu.h"
#else
#include "hal/cpu_hal.h"
#define esp_cpu_get_cycle_count cpu_hal_get_cycle_count
#endif

void timer_init(void)
{
}

uint32_t hal_ticks(void)
{
    return (uint32_t)esp_cpu_get_cycle_count();
}

uint32_t hal_ticks_hz(void)
{
    return hal_clock_hz();
}
