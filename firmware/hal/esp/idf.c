/* The measurer as an application of ESP-IDF 5 or later: the line to the host is UART 0, through its driver.
 *
 * It runs in a task with its own stack, since that of app_main() may be too small, on the last core. The log is
 * off: its lines would come between the frames.
 */
#include <stddef.h>
#include <stdint.h>

#include "driver/uart.h"
#include "esp_log.h"
#include "esp_system.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "sdkconfig.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "measurer.h"

enum { RECEIVE_BYTES = 1024, PRIORITY = 1 };

void app_main(void);

static StackType_t stack[MCUD_STACK_BYTES / sizeof(StackType_t)];
static StaticTask_t task;
static int32_t waiting = -1; /* the byte that ended hal_wait(), not yet read; -1 for none */

static void run(void *unused)
{
    (void)unused;
    measurer_start();
    for (;;) {
        measurer_turn();
    }
}

void app_main(void)
{
    (void)xTaskCreateStaticPinnedToCore(run, "measurer", sizeof stack, NULL, PRIORITY, stack, &task,
                                        portNUM_PROCESSORS - 1);
}

void hal_init(void)
{
    const uart_config_t line = {
        .baud_rate = MCUD_UART_BAUD,
        .data_bits = UART_DATA_8_BITS,
        .parity = UART_PARITY_DISABLE,
        .stop_bits = UART_STOP_BITS_1,
        .flow_ctrl = UART_HW_FLOWCTRL_DISABLE,
    };
    esp_log_level_set("*", ESP_LOG_NONE);
    ESP_ERROR_CHECK(uart_driver_install(UART_NUM_0, RECEIVE_BYTES, 0, 0, NULL, 0));
    ESP_ERROR_CHECK(uart_param_config(UART_NUM_0, &line));
    timer_init();
}

uint32_t hal_clock_hz(void)
{
    return CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ * 1000000u;
}

/* Waits for the last byte at the end of a frame, so that sending does not interrupt a kernel that is timed. */
void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    if (count == 0u) {
        return;
    }
    (void)uart_write_bytes(UART_NUM_0, bytes, count);
    if (bytes[count - 1u] == 0u) {
        (void)uart_wait_tx_done(UART_NUM_0, portMAX_DELAY);
    }
}

static int32_t next_byte(TickType_t patience)
{
    uint8_t byte;
    return uart_read_bytes(UART_NUM_0, &byte, 1, patience) == 1 ? (int32_t)byte : -1;
}

int32_t hal_uart_read(void)
{
    if (waiting < 0) {
        return next_byte(0);
    }
    const int32_t byte = waiting;
    waiting = -1;
    return byte;
}

void hal_wait(void)
{
    if (waiting < 0) {
        waiting = next_byte(portMAX_DELAY);
    }
}

uint8_t *hal_stack_limit(void)
{
    return (uint8_t *)stack;
}

uint8_t *hal_stack_top(void)
{
    return (uint8_t *)stack + sizeof stack;
}

void hal_exit(int32_t code)
{
    (void)code;
    esp_restart();
}
