/* Text of a fault handler to the emulator's console, without stdio. Never linked into programs for hardware. */
#include <stdint.h>

#include "hal_parts.h"

#define SYS_WRITE0 0x04u

void report_text(const char *text)
{
    core_semihosting(SYS_WRITE0, text);
}

void report_value(const char *label, uint32_t value)
{
    char digits[9];
    for (uint32_t i = 0; i < 8u; i++) {
        digits[i] = "0123456789abcdef"[(value >> (28u - 4u * i)) & 15u];
    }
    digits[8] = '\0';
    report_text(label);
    report_text(digits);
}
