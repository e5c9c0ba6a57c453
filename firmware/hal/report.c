/* Text of a fault handler on the serial line to the host, without stdio: the emulator writes the line down.
 * Never linked into programs for hardware. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"

/* A NUL before each text ends the frame that the program was sending. The UART is started first, since a fault may come
 * before its start. */
void report_text(const char *text)
{
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    uart_send(MCUD_UART_BASE, 0u);
    for (; *text != '\0'; text++) {
        uart_send(MCUD_UART_BASE, (uint8_t)*text);
    }
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
