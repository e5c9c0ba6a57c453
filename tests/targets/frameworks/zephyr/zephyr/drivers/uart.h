#include <stdint.h>
#include <zephyr/device.h>
typedef void (*uart_irq_callback_user_data_t)(const struct device *device, void *user_data);
int uart_irq_callback_user_data_set(const struct device *device, uart_irq_callback_user_data_t callback,
                                    void *user_data);
void uart_irq_rx_enable(const struct device *device);
int uart_irq_update(const struct device *device);
int uart_irq_rx_ready(const struct device *device);
int uart_fifo_read(const struct device *device, uint8_t *bytes, const int size);
void uart_poll_out(const struct device *device, unsigned char byte);
