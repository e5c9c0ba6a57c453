/* The measurer as an application of Zephyr 3.1 or later: the line to the host is the UART that the devicetree has chosen
 * for the console, which prj.conf turns off. Zephyr calls its main(). */
#include <stddef.h>
#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"

static const struct device *const line = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static K_SEM_DEFINE(arrived, 0, 1);

/* 256 bytes are one frame, and 8-bit indices wrap around. One writer, one reader. */
static struct {
    volatile uint8_t bytes[256];
    volatile uint8_t head; /* next to be written */
    volatile uint8_t tail; /* next to be read */
} ring;

static uint8_t *stack_top;

/* Bytes that find the ring full are lost: the host sends the frame again. */
static void receive(const struct device *device, void *unused)
{
    (void)unused;
    uint8_t byte;
    (void)uart_irq_update(device);
    while (uart_irq_rx_ready(device) > 0 && uart_fifo_read(device, &byte, 1) == 1) {
        const uint8_t next = (uint8_t)(ring.head + 1u);
        if (next != ring.tail) {
            ring.bytes[ring.head] = byte;
            ring.head = next;
        }
    }
    k_sem_give(&arrived);
}

void hal_init(void)
{
    stack_top = __builtin_frame_address(0);
    (void)uart_irq_callback_user_data_set(line, receive, NULL);
    uart_irq_rx_enable(line);
    timer_init();
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uart_poll_out(line, bytes[i]);
    }
}

int32_t hal_uart_read(void)
{
    if (ring.tail == ring.head) {
        return -1;
    }
    const uint8_t byte = ring.bytes[ring.tail];
    ring.tail = (uint8_t)(ring.tail + 1u);
    return byte;
}

void hal_wait(void)
{
    (void)k_sem_take(&arrived, K_FOREVER);
}

uint8_t *hal_stack_limit(void)
{
    return stack_top - MCUD_STACK_BYTES;
}

uint8_t *hal_stack_top(void)
{
    return stack_top;
}

void hal_exit(int32_t code)
{
    (void)code;
    sys_reboot(SYS_REBOOT_COLD);
}
