#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
typedef enum { UART_NUM_0, UART_NUM_1 } uart_port_t;
typedef enum { UART_DATA_7_BITS = 2, UART_DATA_8_BITS } uart_word_length_t;
typedef enum { UART_PARITY_DISABLE } uart_parity_t;
typedef enum { UART_STOP_BITS_1 = 1 } uart_stop_bits_t;
typedef enum { UART_HW_FLOWCTRL_DISABLE } uart_hw_flowcontrol_t;
typedef struct {
    int baud_rate;
    uart_word_length_t data_bits;
    uart_parity_t parity;
    uart_stop_bits_t stop_bits;
    uart_hw_flowcontrol_t flow_ctrl;
    uint8_t rx_flow_ctrl_thresh;
} uart_config_t;
typedef void *QueueHandle_t;
esp_err_t uart_driver_install(uart_port_t port, int receive_bytes, int send_bytes, int queue_size, QueueHandle_t *queue,
                              int interrupt_flags);
esp_err_t uart_param_config(uart_port_t port, const uart_config_t *config);
int uart_write_bytes(uart_port_t port, const void *bytes, size_t count);
int uart_read_bytes(uart_port_t port, void *bytes, uint32_t count, TickType_t patience);
esp_err_t uart_wait_tx_done(uart_port_t port, TickType_t patience);
