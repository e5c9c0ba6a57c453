/* The measurer: answers requests on the serial line for ever. */
#include "command.h"
#include "mcud_hal.h"

static mcud_link host_link;

int main(void)
{
    hal_init();
    for (;;) {
        const int32_t byte = hal_uart_read();
        if (byte < 0) {
            hal_wait();
        } else if (frame_receive(&host_link.frame, (uint8_t)byte)) {
            command_answer(&host_link);
        }
    }
}
