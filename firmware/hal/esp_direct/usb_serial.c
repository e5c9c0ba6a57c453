/* The USB serial port that an ESP32-C3 or C6 has in hardware (USB Serial/JTAG), in place of a UART. It has no baud rate.
 *
 * The port sends 64 bytes at a time to the host, or fewer when the program marks the end of a message: the zero that
 * ends a frame, and the end of a line.
 */
#include <stdint.h>

#include "hal_parts.h"
#include "registers.h"

/* Technical Reference Manuals: USB Serial/JTAG Controller */
#define USB_DEVICE_EP1 0x0u
#define USB_DEVICE_EP1_CONF 0x4u
#define USB_DEVICE_EP1_CONF_WR_DONE (1u << 0)
#define USB_DEVICE_EP1_CONF_SERIAL_IN_EP_DATA_FREE (1u << 1)
#define USB_DEVICE_EP1_CONF_SERIAL_OUT_EP_DATA_AVAIL (1u << 2)

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    (void)clock_hz;
    (void)baud;
    while (uart_receive_ready(base)) { /* drops bytes from before this program */
        (void)uart_receive(base);
    }
}

int32_t uart_receive_ready(uintptr_t base)
{
    return (reg_read(base + USB_DEVICE_EP1_CONF) & USB_DEVICE_EP1_CONF_SERIAL_OUT_EP_DATA_AVAIL) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + USB_DEVICE_EP1);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while ((reg_read(base + USB_DEVICE_EP1_CONF) & USB_DEVICE_EP1_CONF_SERIAL_IN_EP_DATA_FREE) == 0u) {
    }
    reg_write(base + USB_DEVICE_EP1, byte);
    if (byte == 0u || byte == (uint8_t)'\n') {
        reg_write(base + USB_DEVICE_EP1_CONF, USB_DEVICE_EP1_CONF_WR_DONE);
    }
}
